/** Restores a revision and kills the panel meanwhile. Afterwards either every host is as it was in that revision, or none is. */
import { setTimeout as wait } from 'node:timers/promises';

import type { Client } from '../support/panel/client.ts';
import type { PanelProcess } from '../support/panel/process.ts';
import type { Fields } from './clients/world.ts';
import type { Random } from './random.ts';
import { list } from './verify.ts';

/** The fields that a restore brings back: all but versions, times and states. */
const contentOf = (hosts: readonly Fields[]): string =>
    JSON.stringify(
        hosts
            .map(
                ({
                    version: _version,
                    updatedAt: _updatedAt,
                    state: _state,
                    stateMessage: _stateMessage,
                    ...content
                }) => content
            )
            .sort((a, b) => Number(a['id']) - Number(b['id']))
    );

/**
 * @param between - changes hosts, and returns when no writer is active any more
 * @returns whether the restore was made; the panel is ready again
 */
export async function cutRestore(
    panel: PanelProcess,
    client: Client,
    random: Random,
    between: () => Promise<void>,
    violation: (text: string) => void
): Promise<boolean> {
    const { data } = await client.get('/api/proxyengine/status');
    const revision = data.revision as number;
    const then = contentOf(await list(client, '/api/hosts'));
    await between();
    const now = contentOf(await list(client, '/api/hosts'));
    const restoring = client.post(`/api/proxyengine/revisions/${revision}/restore`).catch(() => null);
    await Promise.race([restoring, wait(random.between(0, 250))]);
    await panel.end('SIGKILL');
    const answer = await restoring;
    await panel.start();
    const found = contentOf(await list(client, '/api/hosts'));
    // A restore may be refused, for example because a certificate is gone. A refusal must change nothing.
    if (answer !== null && answer.code !== 0 && (answer.code >= 50_000 || found !== now)) {
        violation(`Restoring revision ${revision} was answered ${answer.text}`);
    }
    if (found !== then && (answer?.code === 0 || found !== now)) {
        violation(
            `Restoring revision ${revision} was ${answer === null ? 'cut' : 'acknowledged'} and the hosts are neither those of then nor those of now`
        );
    }
    return found === then;
}
