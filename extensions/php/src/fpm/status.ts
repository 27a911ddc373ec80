/** The numbers of a master, by its own status page, and of its OPcache, by a script beside the configuration. */
import { hasStatusListen, statusPath } from '../config/render.ts';
import type { Ctx } from '../settings.ts';
import { configFolder, type Site, socketPath, statusSocketPath } from '../sites/site.ts';
import { askFastCgi } from './fastcgi.ts';

/** What the status page says. Source: fpm_status.c of PHP. */
export interface FpmStatus {
    /** Requests since the start of the master. */
    readonly accepted: number;
    readonly active: number;
    readonly idle: number;
    readonly total: number;
    readonly maxActive: number;
    readonly maxChildrenReached: number;
    readonly queue: number;
    readonly slow: number;
}

/** What PHP says of its OPcache. */
export interface OpcacheStatus {
    readonly enabled: boolean;
    readonly usedBytes: number;
    /** Per cent. */
    readonly hitRate: number;
    readonly scripts: number;
}

const statusMs = 2_000;
/** The panel's script needs a free worker. */
const scriptMs = 10_000;

/** Asks the status page of a slot. @throws Error when the master does not serve with the configuration of this revision */
export async function readStatus(ctx: Ctx, site: Site, slot: number, revision: number): Promise<FpmStatus> {
    const path = statusPath(revision);
    const socket = hasStatusListen(site.release) ? statusSocketPath(site, slot) : socketPath(site, slot);
    const answer = await askFastCgi(ctx, socket, { script: path, path, query: 'json', timeoutMs: statusMs });
    if (answer.status !== 200) {
        throw new Error(`The status page answers ${answer.status}`);
    }
    const page = JSON.parse(answer.body) as Readonly<Record<string, unknown>>;
    const number = (name: string): number => Number(page[name] ?? 0);
    return {
        accepted: number('accepted conn'),
        active: number('active processes'),
        idle: number('idle processes'),
        total: number('total processes'),
        maxActive: number('max active processes'),
        maxChildrenReached: number('max children reached'),
        queue: number('listen queue'),
        slow: number('slow requests')
    };
}

/** Asks for the state of the OPcache. It takes a worker for a moment; null when all are busy. */
export async function readOpcache(ctx: Ctx, site: Site, slot: number): Promise<OpcacheStatus | null> {
    try {
        const answer = await askPanelScript(ctx, site, slot, '');
        const { enabled, usedBytes, hitRate, scripts } = JSON.parse(answer) as OpcacheStatus;
        return { enabled, usedBytes, hitRate: Math.round(hitRate * 100) / 100, scripts };
    } catch {
        return null;
    }
}

/** Empties the OPcache of a slot. False when it has none. @throws Error when no worker answers */
export async function resetOpcache(ctx: Ctx, site: Site, slot: number): Promise<boolean> {
    const { reset } = JSON.parse(await askPanelScript(ctx, site, slot, 'reset')) as { reset: boolean };
    return reset;
}

/** What a script of the site could do, tried by a script in its PHP-FPM. */
export interface ScriptAttempts {
    /** Paths outside of the site's folder that it could see. */
    readonly outside: readonly string[];
    /** Functions that start programs and that are there. */
    readonly programs: readonly string[];
    /** It made a link that leads out. */
    readonly linked: boolean;
    /** It wrote into the served folder. */
    readonly written: boolean;
}

/** Lets a script try the walls of PHP. @throws Error when no worker answers */
export async function tryWalls(ctx: Ctx, site: Site, slot: number): Promise<ScriptAttempts> {
    return JSON.parse(await askPanelScript(ctx, site, slot, 'sandbox')) as ScriptAttempts;
}

async function askPanelScript(ctx: Ctx, site: Site, slot: number, action: string): Promise<string> {
    const script = `${configFolder(site, slot)}/panel.php`;
    const { status, body } = await askFastCgi(ctx, socketPath(site, slot), {
        script,
        path: '/panel.php',
        params: { PORTICO_ACTION: action, PORTICO_ROOT: `${site.folder}/${site.root}` },
        timeoutMs: scriptMs
    });
    if (status !== 200) {
        throw new Error(`PHP answers ${status}`);
    }
    return body;
}
