/** How well a site is walled off, by attempts to break out of it. */
import { tryWalls } from '../fpm/status.ts';
import type { Ctx } from '../settings.ts';
import { configFolder, type Site, socketPath } from '../sites/site.ts';
import type { Releases } from '../versions/releases.ts';
import { existing, tryAs } from './attempts.ts';

/** One attempt, and what came of it. */
export interface SandboxCheck {
    readonly id: string;
    readonly weight: number;
    readonly ok: boolean;
    readonly evidence: string;
    readonly remedy?: string;
}

/** The score of a site. */
export interface SandboxScore {
    /** 0 to 100: the share of the weights that held. */
    readonly score: number;
    readonly checks: SandboxCheck[];
}

/** What a check says before its weight is known. */
type Finding = Omit<SandboxCheck, 'id' | 'weight'>;

const weights: Readonly<Record<string, number>> = {
    'not-root': 10,
    shadow: 15,
    panel: 15,
    'other-sites': 15,
    'other-sockets': 10,
    'open-basedir': 10,
    programs: 10,
    links: 5,
    'hidden-files': 5,
    'code-is-writable': 5
};
const secretFiles = ['/etc/shadow', '/etc/gshadow', '/root'];
/** What must not be found by HTTP. */
const hiddenFiles = [
    '.env',
    '.env.local',
    '.env.production',
    '.git/config',
    '.git/HEAD',
    '.svn/entries',
    '.hg/hgrc',
    '.htpasswd',
    'auth.json',
    'wp-config.php.bak',
    'wp-config.php~'
];

/** Makes all attempts. @throws TOOL_MISSING 50302 without the command-line program; Error when the site does not answer */
export async function scoreSandbox(
    ctx: Ctx,
    releases: Releases,
    site: Site,
    sites: readonly Site[]
): Promise<SandboxScore> {
    const cli = await releases.cli(site.release);
    const findings = {
        ...(await tryMachine(
            ctx,
            cli,
            site,
            sites.filter(({ id }) => id !== site.id)
        )),
        ...(await tryScripts(ctx, site)),
        'hidden-files': await tryHidden(ctx, cli, site)
    };
    const checks = Object.entries(findings).map(([id, finding]) => ({
        id,
        weight: weights[id] ?? 0,
        ...finding
    }));
    const sum = (list: readonly SandboxCheck[]): number =>
        list.reduce((total, { weight }) => total + weight, 0);
    return { score: Math.round((100 * sum(checks.filter(({ ok }) => ok))) / sum(checks)), checks };
}

/** Attempts as the account, past PHP's own walls: only the system forbids. */
async function tryMachine(
    ctx: Ctx,
    cli: string,
    site: Site,
    others: readonly Site[]
): Promise<Readonly<Record<string, Finding>>> {
    const panel = [ctx.dataDir, `${ctx.dataDir}/../..`];
    const foreign = others.flatMap((other) => [
        other.folder,
        `${other.folder}/${other.root}`,
        `${other.folder}/private/sessions`,
        `${other.folder}/logs`,
        configFolder(other, other.slot)
    ]);
    const sockets = others.map((other) => socketPath(other, other.slot));
    const { uid, groups, read, connected } = await tryAs(ctx, cli, site.account, {
        paths: [...secretFiles, ...panel, ...foreign],
        sockets
    });
    const opened = (paths: readonly string[]): readonly string[] =>
        paths.filter((path) => read.includes(path));
    const closed = (id: string, tried: readonly string[], got: readonly string[]): [string, Finding] => [
        id,
        got.length === 0
            ? {
                  ok: true,
                  evidence: tried.length === 0 ? 'There is no other site' : `Refused: ${named(tried)}`
              }
            : {
                  ok: false,
                  evidence: `Opened: ${named(got)}`,
                  remedy: 'Take the rights of other accounts away from it'
              }
    ];
    return Object.fromEntries([
        [
            'not-root',
            uid !== 0 && groups.every((group) => group !== 0)
                ? {
                      ok: true,
                      evidence: `It runs as the account ${uid} with the groups ${groups.join(', ') || 'none'}`
                  }
                : {
                      ok: false,
                      evidence: 'It runs as root, or in its group',
                      remedy: 'Take the account out of the group root'
                  }
        ],
        closed('shadow', secretFiles, opened(secretFiles)),
        closed('panel', panel, opened(panel)),
        closed('other-sites', foreign, opened(foreign)),
        closed('other-sockets', sockets, connected)
    ]);
}

/** Attempts of a script in PHP-FPM. */
async function tryScripts(ctx: Ctx, site: Site): Promise<Readonly<Record<string, Finding>>> {
    const { outside, programs, linked, written } = await tryWalls(ctx, site, site.slot);
    const remedy = 'Reload the site, so that its pinned settings are in effect';
    return {
        'open-basedir':
            outside.length === 0
                ? { ok: true, evidence: 'A script sees nothing outside of the folder of the site' }
                : { ok: false, evidence: `A script sees ${named(outside)}`, remedy },
        programs:
            programs.length === 0
                ? { ok: true, evidence: 'A script can start no program' }
                : { ok: false, evidence: `A script has ${named(programs)}`, remedy },
        links: linked
            ? { ok: false, evidence: 'A script made a link that leads out of the site', remedy }
            : { ok: true, evidence: 'A script can make no link' },
        'code-is-writable': written
            ? {
                  ok: false,
                  evidence: `A script wrote a file into ${site.root}`,
                  remedy: 'Let another account own the code, readable to the group of the engine, where the application does not update itself'
              }
            : { ok: true, evidence: `A script cannot write into ${site.root}` }
    };
}

/** Whether the engine, as its own account, could serve files that tell secrets. */
async function tryHidden(ctx: Ctx, cli: string, site: Site): Promise<Finding> {
    const root = `${site.folder}/${site.root}`;
    const present = await existing(ctx, root, hiddenFiles);
    const engine = await ctx.hosts.account();
    const paths = present.map((name) => `${root}/${name}`);
    const served =
        present.length === 0
            ? []
            : engine === null
              ? paths
              : (await tryAs(ctx, cli, engine.user, { paths })).read;
    return served.length === 0
        ? {
              ok: true,
              evidence: present.length === 0 ? 'There is none' : `The engine cannot read ${named(present)}`
          }
        : {
              ok: false,
              evidence: `The engine can read ${named(served)}: only its rule for such names keeps visitors out`,
              remedy: 'Move it out of the served folder, or let only the account read it (files-owner does that)'
          };
}

function named(list: readonly string[]): string {
    const shown = list.slice(0, 8);
    return `${shown.join(', ')}${list.length > shown.length ? ` and ${list.length - shown.length} more` : ''}`;
}
