/** The services of one generation of the plugin. */
import { Clones } from './clones/clones.ts';
import { Console } from './console/console.ts';
import { History } from './console/history.ts';
import { Credentials } from './credentials/credentials.ts';
import { Dumps } from './dumps/dumps.ts';
import { DataFolder } from './dumps/folder.ts';
import { Restores } from './dumps/restores.ts';
import { DumpSchedules } from './dumps/schedules.ts';
import { Unfinished } from './dumps/unfinished.ts';
import type { KindName } from './kinds/kind.ts';
import { kinds } from './kinds/kinds.ts';
import type { FindTarget, Target } from './kinds/target.ts';
import { Containers } from './managed/containers/containers.ts';
import type { Engine } from './managed/engine.ts';
import { Folders } from './managed/folders.ts';
import { Configurations } from './managed/kinds/configurations.ts';
import { createMariadb } from './managed/kinds/mariadb.ts';
import { postgres } from './managed/kinds/postgres.ts';
import { Programs } from './managed/kinds/programs.ts';
import { ManagedServers } from './managed/managed.ts';
import { Ports } from './managed/network/ports.ts';
import { ManagedRows } from './managed/rows.ts';
import { ServerTasks } from './managed/tasks.ts';
import { Upgrades } from './managed/upgrades.ts';
import { BaseCopies } from './point-in-time/base-copies.ts';
import { LogFiles } from './point-in-time/log-files.ts';
import { createMariadbArchiver } from './point-in-time/mariadb.ts';
import { PointInTime } from './point-in-time/point-in-time.ts';
import { postgresArchiver } from './point-in-time/postgresql.ts';
import { Connections } from './servers/connections.ts';
import { Metrics } from './servers/metrics.ts';
import { Readers } from './servers/readers.ts';
import { Servers } from './servers/servers.ts';
import type { Ctx } from './settings.ts';

/** What the routes ask. */
export interface Services {
    readonly servers: Servers;
    readonly connections: Connections;
    readonly engines: Readonly<Record<KindName, Engine>>;
    readonly managed: ManagedServers;
    readonly upgrades: Upgrades;
    readonly managedRows: ManagedRows;
    readonly programs: Programs;
    readonly containers: Containers;
    readonly configurations: Configurations;
    readonly pointInTime: PointInTime;
    readonly readers: Readers;
    readonly metrics: Metrics;
    readonly console: Console;
    readonly history: History;
    readonly folder: DataFolder;
    readonly credentials: Credentials;
    readonly dumps: Dumps;
    readonly restores: Restores;
    readonly clones: Clones;
    readonly schedules: DumpSchedules;
    readonly unfinished: Unfinished;
    /** The server of a number. @throws NOT_FOUND 40400 */
    readonly target: FindTarget;
    /** Forgets what was prepared in a database that is gone. */
    forgetDatabase(id: number, database: string): void;
}

/** Makes the services and connects them. */
export function createServices(ctx: Ctx): Services {
    const connections = new Connections(ctx);
    const servers = new Servers(ctx, connections);
    const readers = new Readers(ctx, connections);
    const history = new History(ctx);
    const folder = new DataFolder(ctx);
    const target = async (id: number): Promise<Target> => {
        const server = await servers.get(id);
        return { server, kind: kinds[server.kind], admin: connections.admin(server) };
    };
    const engines = { mysql: createMariadb(ctx), postgresql: postgres };
    const folders = new Folders(folder);
    const managedRows = new ManagedRows(ctx, servers, folders, engines);
    const containers = new Containers(ctx);
    const programs = new Programs({ ctx, servers, rows: managedRows, folders, engines, containers });
    const ports = new Ports(ctx, servers);
    const tasks = new ServerTasks(ctx);
    const own = { ctx, connections, rows: managedRows, programs, containers, folders, engines, tasks };
    const upgrades = new Upgrades({ ...own, servers, folder });
    const managed = new ManagedServers({ ...own, ports, upgrades });
    const credentials = new Credentials(ctx, target);
    const archivers = { mysql: createMariadbArchiver(ctx, connections), postgresql: postgresArchiver };
    const pointInTime = new PointInTime({
        ctx,
        folder,
        folders,
        managed,
        rows: managedRows,
        programs,
        engines,
        archivers,
        copies: new BaseCopies(ctx, folders),
        logs: new LogFiles({ folder, folders, programs, archivers, target }),
        credentials,
        target
    });
    const unfinished = new Unfinished(ctx, target);
    const restores = new Restores({ ctx, folder, connections, unfinished, target });
    const dumps = new Dumps({ ctx, folder, restores, target });
    return {
        servers,
        connections,
        engines,
        managed,
        upgrades,
        managedRows,
        programs,
        containers,
        pointInTime,
        configurations: new Configurations({ managed, rows: managedRows, programs, engines, target }),
        readers,
        metrics: new Metrics(ctx, target),
        history,
        console: new Console(connections, readers, history),
        folder,
        credentials,
        dumps,
        restores,
        clones: new Clones({ ctx, dumps, restores, unfinished, target }),
        schedules: new DumpSchedules({ ctx, servers, dumps, target }),
        unfinished,
        target,
        forgetDatabase: (id, database) => readers.forget(id, database)
    };
}
