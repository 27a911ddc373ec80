/** The health checks of the plugin. */
import { access, readdir } from 'node:fs/promises';

import type { Health } from '@portico/sdk';

import { hasProgram, releaseFolder } from './dumps/clients.ts';
import type { Services } from './services.ts';
import type { Ctx } from './settings.ts';

/** Names that one message shows at most. */
const maxNames = 10;

/**
 * Registers the checks `servers`, degraded when a server does not answer, `programs`, degraded when a program is missing, and `point-in-time`, degraded
 * when the past of a server is not kept as an admin wants it.
 */
export function registerHealthChecks(ctx: Ctx, services: Services): void {
    ctx.health('servers', () => checkServers(services));
    ctx.health('programs', () => checkPrograms(services));
    ctx.health('point-in-time', () => checkPointInTime(services));
}

async function checkServers({ servers, connections, managed }: Services): Promise<Health> {
    const all = await servers.list();
    const states = await managed.states();
    const failing = all
        .map((row) => ({ name: row.name, ...(states.get(row.id) ?? connections.reached(row.id)) }))
        .filter(({ state }) => state === 'offline' || state === 'failed');
    if (failing.length > 0) {
        const names = failing
            .slice(0, maxNames)
            .map(({ name, message }) => `${name} (${message ?? 'no answer'})`);
        return {
            state: 'degraded',
            evidence: `These servers do not answer: ${names.join(', ')}`,
            remedy: {
                text: 'See whether they run, and whether their login is right',
                route: '/api/plugins/database/servers'
            }
        };
    }
    return { state: 'ok', evidence: `${all.length} servers are known` };
}

async function checkPointInTime({ pointInTime, servers }: Services): Promise<Health> {
    const names = new Map((await servers.list()).map(({ id, name }) => [id, name]));
    const failing = [...pointInTime.problems()].filter(([id]) => names.has(id));
    return failing.length === 0
        ? { state: 'ok', evidence: 'The past of servers is kept where it is wanted' }
        : {
              state: 'degraded',
              evidence: `The past of these servers is not kept: ${failing
                  .slice(0, maxNames)
                  .map(([id, problem]) => `${names.get(id)} (${problem})`)
                  .join(', ')}`,
              remedy: {
                  text: 'See whether the disk has room, and what the server logs',
                  route: '/api/plugins/database/servers'
              }
          };
}

async function checkPrograms({ engines }: Services): Promise<Health> {
    const releases = await readdir(releaseFolder).catch(() => []);
    const clients = releases.map((release) => `${releaseFolder}/${release}/bin/pg_dump`);
    const needed = [
        { name: 'mariadb-server', isThere: (await engines.mysql.releases()).length > 0 },
        { name: 'mariadb-client', isThere: await hasProgram('mariadb-dump') },
        { name: 'mariadb-backup', isThere: await hasProgram('mariadb-backup') },
        { name: 'postgresql', isThere: (await engines.postgresql.releases()).length > 0 },
        { name: 'postgresql-client', isThere: await anyOf(clients) }
    ];
    const missing = needed.filter(({ isThere }) => !isThere).map(({ name }) => name);
    return missing.length === 0
        ? { state: 'ok', evidence: 'The programs of MariaDB and PostgreSQL are installed' }
        : {
              state: 'degraded',
              evidence: `These packages are missing: ${missing.join(', ')}. What needs them answers 50302`,
              remedy: {
                  text: 'Install what you want to use',
                  command: `apt-get install ${missing.join(' ')}`
              }
          };
}

async function anyOf(paths: readonly string[]): Promise<boolean> {
    const found = await Promise.all(
        paths.map((path) =>
            access(path).then(
                () => true,
                () => false
            )
        )
    );
    return found.includes(true);
}
