/** The services of one generation of the plugin. */
import { Console } from './console/console.ts';
import { History } from './console/history.ts';
import type { ServerRow } from './entities.ts';
import type { Access, Kind } from './kind.ts';
import { kinds } from './kinds.ts';
import { Connections } from './servers/connections.ts';
import { Readers } from './servers/readers.ts';
import { Servers } from './servers/servers.ts';
import type { Ctx } from './settings.ts';

/** A server with what is needed to work on it. */
export interface Target {
    readonly server: ServerRow;
    readonly kind: Kind;
    /** Sessions as the panel's own account. */
    readonly admin: Access;
}

/** What the routes ask. */
export interface Services {
    readonly servers: Servers;
    readonly connections: Connections;
    readonly readers: Readers;
    readonly console: Console;
    readonly history: History;
    /** The server of a number. @throws NOT_FOUND 40400 */
    target(id: number): Promise<Target>;
    /** Forgets what was prepared in a database that is gone. */
    forgetDatabase(id: number, database: string): void;
}

/** Makes the services and connects them. */
export function createServices(ctx: Ctx): Services {
    const connections = new Connections(ctx);
    const servers = new Servers(ctx, connections);
    const readers = new Readers(ctx, connections);
    const history = new History(ctx);
    return {
        servers,
        connections,
        readers,
        history,
        console: new Console(connections, readers, history),
        async target(id) {
            const server = await servers.get(id);
            return { server, kind: kinds[server.kind], admin: connections.admin(server) };
        },
        forgetDatabase: (id, database) => readers.forget(id, database)
    };
}
