import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { Server } from '@modelcontextprotocol/server';
import type { Actor } from '@portico/sdk';
import { createTestHost } from '@portico/testing';

import mcpserver from '../../../../extensions/mcpserver/src/index.ts';
import { Sessions } from '../../../../extensions/mcpserver/src/protocol/sessions.ts';
import type { Visit } from '../../../../extensions/mcpserver/src/protocol/visit.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const visitOf = (id: number): Visit => {
    const actor: Actor = {
        kind: 'user',
        id,
        username: `user${id}`,
        role: 'admin',
        tokenId: null,
        permissions: [],
        key: `user:${id}`,
        can: () => true
    };
    return { actor, signal: new AbortController().signal, areas: null, effect: null };
};
const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': '2025-11-25'
};
const url = 'http://127.0.0.1/mcp';
const initialize = {
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'unit', version: '1' } }
};
const half = 1_800_000;

async function opened(sessions: Sessions, visit: Visit): Promise<string> {
    const answer = await sessions.answer(new Request(url, { method: 'POST', headers }), visit, initialize);
    await answer.text();
    return answer.headers.get('mcp-session-id') ?? '';
}

describe('Sessions', () => {
    it('ends what was idle for half an hour, and nothing whose stream is open', async () => {
        let now = 0;
        const sessions = new Sessions(
            () => new Server({ name: 'unit', version: '1' }, { capabilities: { tools: {} } }),
            () => now
        );
        const visit = visitOf(1);
        const idle = await opened(sessions, visit);
        const busy = await opened(sessions, visit);
        const get = new Request(url, { headers: { ...headers, 'mcp-session-id': busy } });
        const stream = await sessions.answer(get, visit, undefined);
        expect(stream.status).to.equal(200);
        now = half - 1;
        const ping = new Request(url, { method: 'POST', headers: { ...headers, 'mcp-session-id': idle } });
        await (await sessions.answer(ping, visit, { jsonrpc: '2.0', id: 2, method: 'ping' })).text();
        now = half + 1;
        await sessions.sweep();
        expect(sessions.list(1).map(({ id }) => id)).to.equal([busy, idle]);
        now = 2 * half;
        await sessions.sweep();
        expect(sessions.list(null)).to.have.length(1);
        expect(sessions.list(null)[0]).to.include({ id: busy, client: 'unit', username: 'user1' });
        await stream.body?.cancel();
        now = 3 * half + 1;
        await sessions.sweep();
        expect(sessions.size).to.equal(0);
    });

    it('opens 200 in all, 20 for each actor, and ends all at once', async () => {
        const sessions = new Sessions(() => new Server({ name: 'unit', version: '1' }, { capabilities: {} }));
        for (let n = 0; n < 200; n += 1) {
            await opened(sessions, visitOf(Math.floor(n / 20)));
        }
        await expect(opened(sessions, visitOf(0))).to.reject();
        await expect(opened(sessions, visitOf(99))).to.reject();
        expect(sessions.size).to.equal(200);
        await sessions.close();
        expect(sessions.size).to.equal(0);
    });
});

describe('what the plugin keeps', { timeout: 60_000 }, () => {
    it('is removed after `callsKept` days, but for approvals that are still open', async () => {
        const host = await createTestHost(mcpserver, {
            package: new URL('../../../../extensions/mcpserver', import.meta.url),
            settings: { callsKept: 30 }
        });
        const ago = (days: number): number => Date.now() - days * 86_400_000;
        const states = ['executed', 'failed', 'rejected', 'expired', 'approved'];
        await host.db.write(async (em) => {
            for (const days of [0, 29, 31, 400]) {
                await em.execute(
                    'insert into calls (at, tool, user_id, username, code, ms, bytes) values (?, ?, 1, ?, 0, 1, 1)',
                    [ago(days), `of__${days}`, 'admin']
                );
                for (const state of states) {
                    await em.execute(
                        `insert into approvals (state, scope, facts, route, effect, dangerous, shown, hash, plan, user_id, actor_key, username, created_at, expires_at)
                         values (?, ?, '{}', 'hosts.create', 'write', 0, '{}', 'a', '{}', 1, 'user:1', 'admin', ?, ?)`,
                        [state, `of__${days}`, ago(days), Date.now() + 600_000]
                    );
                }
            }
        });
        const left = async (): Promise<unknown> => {
            await host.schedules.run('cleanup');
            const { data: calls } = await host
                .as({ username: 'admin', role: 'admin' })
                .get<{ tool: string }[]>('/calls');
            const kept = await host.db.read((em) =>
                em.execute<{ scope: string; states: number }[]>(
                    'select scope, count(*) as states from approvals group by scope order by max(id) desc'
                )
            );
            return [calls.map(({ tool }) => tool), kept.map((each) => [each.scope, each.states])];
        };
        const open = [
            ['of__400', 1],
            ['of__31', 1]
        ];
        expect(await left()).to.equal([
            ['of__29', 'of__0'],
            [...open, ['of__29', states.length], ['of__0', states.length]]
        ]);
        await host.setSettings({ callsKept: 1 });
        expect(await left()).to.equal([['of__0'], [...open, ['of__29', 1], ['of__0', states.length]]]);
        await host.close();
    });
});
