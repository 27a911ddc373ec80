import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { failureOf } from '../../../../extensions/backup/src/restic/failures.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const failed = { code: 1, signal: null, timedOut: false } as const;

describe('failureOf', () => {
    it('tells a lock from an answer of a server, whatever numbers its age and its process have', () => {
        const locked = (pid: number, age: string): string =>
            [
                `unable to create lock in backend: repository is already locked by PID ${pid} on vm by root (UID 0, GID 0)`,
                `lock was created at 2026-11-28 14:53:12 (${age} ago)`,
                'storage ID 5033f1f2'
            ].join('\n');
        for (const said of [locked(503, '2s'), locked(7, '1.502s'), locked(7, '504.401ms')]) {
            expect(failureOf(said, failed, [])).to.include({ code: 40951, reason: 'LOCKED' });
        }
        for (const said of [
            'Fatal: unable to open config file: unexpected HTTP response (503): 503 Service Unavailable',
            'Fatal: create repository failed: server response unexpected: 502 Bad Gateway (502)',
            'Fatal: unable to open config file: Stat: 504 Gateway Timeout'
        ]) {
            expect(failureOf(said, failed, [])).to.include({ code: 50350, reason: 'TARGET_UNREACHABLE' });
        }
        expect(failureOf('Fatal: 503 files are gone', failed, [])).to.include({ reason: 'RESTIC_FAILED' });
    });
});
