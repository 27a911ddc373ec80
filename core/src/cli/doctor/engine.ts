/** Checks of the proxy engine: its binary, its user, its process and its ports. */
import { readFileSync, readlinkSync } from 'node:fs';

import Sqlite from 'better-sqlite3';

import { pingAdmin } from '../../engine/caddy/admin.ts';
import { probeListeners } from '../../engine/caddy/listeners.ts';
import { findBinary, runBinary } from '../../engine/caddy/process/binary.ts';
import { findEngine, type FoundEngine } from '../../engine/caddy/process/process.ts';
import { checkSocket, type EngineFolders, engineHome } from '../../engine/files/home.ts';
import { type EngineFeatures, engineFeatures } from '../../engine/render/features.ts';
import { parseEngineVersion } from '../../engine/render/version.ts';
import { definitions } from '../../features/settings/definitions.ts';
import { readPanelAddress } from '../../platform/address/panel.ts';
import type { Config } from '../../platform/config.ts';
import { createKeyring } from '../../platform/keys/keyring.ts';
import { startOf } from '../../platform/process/process-identity.ts';
import { askReadiness, Client } from '../panel/client.ts';
import { databasePath } from '../panel/data-folder.ts';
import { type Check, fault, ok, warn } from './check.ts';

type EnginePorts = Readonly<Record<'engine-http' | 'engine-https', number>>;

const patienceMs = 5_000;
const install = 'Install Caddy (https://caddyserver.com/docs/install), or name its binary in PORTICO_CADDY';

/** What an admin notices when a version of Caddy lacks a feature; null for nothing. */
const consequences: Readonly<Record<keyof EngineFeatures, string | null>> = {
    streamCloseDelay: 'a change that needs a reload cuts every WebSocket',
    permissionModule: null,
    weightedRoundRobin: null,
    rewritesHostForTls: null,
    http3: 'no HTTP/3'
};

/** Checks the proxy engine. */
export async function checkEngine(config: Config, userAgent: string): Promise<Check[]> {
    let folders: EngineFolders;
    try {
        folders = engineHome(config.dataDir, config.engineUser);
    } catch (error) {
        const user = fault(
            'engine-user',
            (error as Error).message,
            'Set PORTICO_ENGINE_USER, or install the package of the engine'
        );
        return binaryOf(config) === null ? [missing(config), user] : [user];
    }
    const { owner } = folders;
    const user = ok(
        'engine-user',
        owner.switched
            ? `${owner.name} (${owner.uid}), with the right to bind low ports and no other`
            : `the panel's own user (${owner.uid})`
    );
    const found = findEngine(folders);
    return [
        await checkBinary(config, folders),
        user,
        await checkProcess(folders, found),
        ...(await checkPorts(folders, found, (await askPorts(config, userAgent)) ?? readPorts(config)))
    ];
}

function binaryOf({ caddy }: Config): string | null {
    return findBinary(caddy === 'caddy' ? null : caddy);
}

function missing({ caddy }: Config): Check {
    return fault(
        'engine-binary',
        caddy === 'caddy'
            ? 'the PATH has no program `caddy`'
            : `there is no executable at ${caddy} (PORTICO_CADDY)`,
        install
    );
}

async function checkBinary(config: Config, folders: EngineFolders): Promise<Check> {
    const binary = binaryOf(config);
    if (binary === null) {
        return missing(config);
    }
    const { code, stdout, stderr } = await runBinary(folders, binary, ['version'], { timeoutMs: patienceMs });
    if (code !== 0) {
        return fault(
            'engine-binary',
            `${binary} version failed${stderr === '' ? '' : `: ${stderr.trim().slice(0, 200)}`}`,
            install
        );
    }
    const version = parseEngineVersion(stdout);
    const features = engineFeatures(version);
    const lacking = (Object.keys(consequences) as (keyof EngineFeatures)[])
        .filter((feature) => !features[feature])
        .map((feature) => consequences[feature])
        .filter((words) => words !== null);
    const evidence = `Caddy ${version?.text ?? `of an unknown version (${stdout.trim().slice(0, 40)})`} at ${binary}`;
    return lacking.length === 0
        ? ok('engine-binary', evidence)
        : warn(
              'engine-binary',
              `${evidence}; with this version ${lacking.join('; ')}`,
              'A newer Caddy (2.8 or later) has all of it'
          );
}

async function checkProcess(folders: EngineFolders, found: FoundEngine | null): Promise<Check> {
    if (found === null) {
        return warn(
            'engine-process',
            'no engine runs for this data folder: nothing is served',
            'The panel starts it, unless an admin stopped it: POST /api/proxyengine/start'
        );
    }
    const { pid } = found.identity;
    const evidence = `process ${pid}, since ${startOf(found.identity).toISOString()}`;
    if (!found.current) {
        return warn(
            'engine-process',
            `${evidence}, but not as the user ${folders.owner.name}`,
            'Restart the engine: POST /api/proxyengine/restart'
        );
    }
    try {
        if (!checkSocket(folders) || !(await pingAdmin(folders, patienceMs))) {
            return fault(
                'engine-process',
                `${evidence}, but it does not answer at ${folders.adminSocket}`,
                'Start the panel: it takes over the engine, or replaces it'
            );
        }
    } catch (error) {
        return fault(
            'engine-process',
            `${evidence}; ${(error as Error).message}`,
            'Find out who created that socket, and remove it'
        );
    }
    return isReplaced(pid)
        ? warn(
              'engine-process',
              `${evidence}, answers, but its binary has been replaced since`,
              'Restart the engine to run the new one: POST /api/proxyengine/restart'
          )
        : ok('engine-process', `${evidence}, answers`);
}

function isReplaced(pid: number): boolean {
    try {
        return readlinkSync(`/proc/${pid}/exe`).endsWith(' (deleted)');
    } catch {
        return false; // the process of another user, which may not be read
    }
}

async function checkPorts(
    { owner }: EngineFolders,
    found: FoundEngine | null,
    ports: EnginePorts
): Promise<Check[]> {
    const lowest = Number(read('/proc/sys/net/ipv4/ip_unprivileged_port_start') ?? 1024);
    return Promise.all(
        Object.entries(ports).map(async ([id, port]) => {
            const [problem] = await probeListeners([{ network: 'tcp', host: '', port }], {
                pid: found?.identity.pid ?? null,
                listeners: []
            });
            if (problem !== undefined) {
                return fault(
                    id,
                    problem,
                    `End the program that listens there, or set another port (engine.${id === 'engine-http' ? 'httpPort' : 'httpsPort'})`
                );
            }
            if (port < lowest && !owner.switched && owner.uid !== 0 && found === null) {
                return warn(
                    id,
                    `only root may listen on port ${port}, unless the binary has the right to; the engine runs as the user ${owner.uid}`,
                    'Give the binary the right (setcap cap_net_bind_service=+ep), run the panel as root, or use another port'
                );
            }
            return ok(id, `port ${port} is free, or held by the engine`);
        })
    );
}

/** The ports that a running panel uses, whose environment may differ from that of this command; null when none answers. */
async function askPorts(config: Config, userAgent: string): Promise<EnginePorts | null> {
    const address = readPanelAddress(config.dataDir);
    if (address === null || (await askReadiness(address, patienceMs))?.ready !== true) {
        return null;
    }
    const client = new Client(address, createKeyring(config.dataDir), userAgent);
    const ask = async (key: string): Promise<number> =>
        (await client.call<{ readonly value: number }>('GET', `/api/settings/${key}`)).data.value;
    try {
        return {
            'engine-http': await ask('engine.httpPort'),
            'engine-https': await ask('engine.httpsPort')
        };
    } catch {
        return null; // the check of the panel says what is wrong with it
    }
}

function readPorts(config: Config): EnginePorts {
    return {
        'engine-http': readPort(config, 'engine.httpPort'),
        'engine-https': readPort(config, 'engine.httpsPort')
    };
}

/** Reads a port setting: from the environment, else as stored, else its default. */
function readPort(config: Config, key: 'engine.httpPort' | 'engine.httpsPort'): number {
    const definition = definitions[key];
    const fixed = definition.environment?.read(config) ?? null;
    if (fixed !== null) {
        return fixed;
    }
    const db = new Sqlite(databasePath(config.dataDir), {
        readonly: true,
        fileMustExist: true,
        timeout: 5_000
    });
    try {
        const row = db
            .prepare<[string], { value: string | null }>('select value from settings where key = ?')
            .get(key);
        const stored: unknown = row?.value == null ? null : JSON.parse(row.value);
        return typeof stored === 'number' ? stored : definition.default;
    } finally {
        db.close();
    }
}

function read(path: string): string | null {
    try {
        return readFileSync(path, 'utf8');
    } catch {
        return null;
    }
}
