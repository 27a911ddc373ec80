/** Checks what must hold after every crash. Each function returns what does not hold. */
import { setTimeout as wait } from 'node:timers/promises';

import type { Client } from '../support/panel/client.ts';
import { ask } from './clients/visitors.ts';
import { emptyWorld, type Fields, kinds, lasting, nameOf, type World } from './clients/world.ts';
import type { Writer } from './clients/writer.ts';
import type { Random } from './random.ts';

export interface Verification {
    readonly client: Client;
    readonly httpPort: number;
    readonly httpsPort: number;
    readonly random: Random;
    readonly violation: (text: string) => void;
}

const patienceMs = 30_000;
const atOnce = 16;

/** @throws Error when the panel cannot be read */
export async function list(client: Client, path: string): Promise<readonly Fields[]> {
    const { status, data, text } = await client.get(path);
    if (status !== 200) {
        throw new Error(`${path} answers ${status} ${text}`);
    }
    return data as readonly Fields[];
}

/** Everything in the panel that belongs to each writer, and the names that belong to none. */
export async function readWorlds(
    client: Client,
    prefixes: readonly string[],
    settings: ReadonlyMap<string, string>
): Promise<{ readonly worlds: ReadonlyMap<string, World>; readonly strangers: readonly string[] }> {
    const found = {
        hosts: await list(client, '/api/hosts'),
        users: await list(client, '/api/users?limit=500'),
        tokens: await list(client, '/api/auth/tokens'),
        certificates: (await list(client, '/api/certificates')).filter(({ source }) => source !== 'engine'),
        settings: await list(client, '/api/settings')
    };
    const worlds = new Map(
        prefixes.map((prefix) => [
            prefix,
            Object.fromEntries(kinds.map((kind) => [kind, new Map<string, Fields>()])) as Record<
                keyof World,
                Map<string, Fields>
            >
        ])
    );
    const strangers: string[] = [];
    for (const kind of kinds) {
        for (const object of found[kind]) {
            const name = nameOf(kind, object);
            const owner =
                kind === 'settings'
                    ? settings.get(name)
                    : prefixes.find((prefix) =>
                          kind === 'hosts' ? name.includes(`.${prefix}.`) : name.startsWith(prefix)
                      );
            if (owner !== undefined) {
                worlds.get(owner)?.[kind].set(name, lasting(kind, object));
            } else if (kind !== 'settings') {
                strangers.push(`${kind} ${name}`);
            }
        }
    }
    return {
        worlds: new Map(prefixes.map((prefix) => [prefix, worlds.get(prefix) ?? emptyWorld])),
        strangers
    };
}

/** Waits until the engine runs and no change waits for it. */
export async function settled({ client, violation }: Verification): Promise<void> {
    const until = performance.now() + patienceMs;
    for (;;) {
        const { data, text } = await client.get('/api/proxyengine/status');
        if (
            data?.state === 'running' &&
            data.pending === 0 &&
            data.pendingHosts === 0 &&
            data.refused.length === 0 &&
            data.configuration.wanted === data.configuration.running
        ) {
            return;
        }
        if (performance.now() > until) {
            violation(`The engine and the rows did not come together: ${text}`);
            return;
        }
        await wait(50);
    }
}

/** Checks that the engine's configuration and table are those of the rows. */
export async function noDrift({ client, violation }: Verification): Promise<void> {
    const { data, text } = await client.get('/api/proxyengine/drift');
    if (data?.drifted !== false) {
        violation(`The engine is not as the panel left it: ${text}`);
    }
}

export async function chainHolds({ client, violation }: Verification): Promise<void> {
    const { data, text } = await client.get('/api/audit/verify');
    if (data?.holds !== true) {
        violation(`The audit chain does not hold: ${text}`);
    }
}

/** Checks that every acknowledged change has its audit entry, and that a change without effect has none. */
export async function recorded(
    { client, violation }: Verification,
    since: string,
    made: ReadonlySet<string>,
    notMade: ReadonlySet<string>
): Promise<void> {
    const seen = new Set<string>();
    for (
        let path: string | undefined =
            `/api/audit?limit=500&outcome=success&from=${encodeURIComponent(since)}`;
        path !== undefined;
    ) {
        const { data, headers, status, text } = await client.get(path);
        if (status !== 200) {
            violation(`The audit log cannot be read: ${text}`);
            return;
        }
        for (const { requestId } of data as { readonly requestId: string }[]) {
            seen.add(requestId);
        }
        path = /<([^>]+)>; rel="next"/.exec(String(headers['link'] ?? ''))?.[1];
    }
    const missing = [...made].filter((id) => !seen.has(id));
    if (missing.length > 0) {
        violation(
            `No audit entry of ${missing.length} acknowledged changes: ${missing.slice(0, 10).join(', ')}`
        );
    }
    const invented = [...notMade].filter((id) => seen.has(id));
    if (invented.length > 0) {
        violation(`An audit entry of changes that were not made: ${invented.join(', ')}`);
    }
}

/** Checks that a retry gets the first answer, also after a crash, and that a retry of a request without a known end does not act twice. */
export async function retries(
    writer: Writer,
    unanswered: { readonly open: Writer['open']; readonly acted: boolean | null },
    { violation, random }: Verification
): Promise<void> {
    for (const { operation, requestId, answer } of writer.kept.filter(() => random.chance(0.25))) {
        const again = await writer.send(operation, `${requestId}-again`);
        if (again.status !== answer.status || again.text !== answer.text) {
            violation(
                `A retry of ${operation.name} with the key ${operation.key} is answered ${again.status} ${again.text}\n    and not ${answer.status} ${answer.text}`
            );
        }
    }
    const { open, acted } = unanswered;
    if (open === null || open.operation.key === undefined) {
        return;
    }
    const { operation } = open;
    const again = await writer.send(operation, `${open.requestId}-again`);
    if (acted === true && again.code !== 0) {
        violation(
            `${operation.name} with the key ${operation.key} was done before the crash, and its retry is answered ${again.status} ${again.text}`
        );
    }
    if (acted === false && again.code === 0) {
        writer.acknowledge({ operation, requestId: `${open.requestId}-again`, answer: again });
    } else if (acted === false && again.code !== 40903 && again.code !== 40901) {
        violation(
            `${operation.name} with the key ${operation.key} was not done before the crash, and its retry is answered ${again.status} ${again.text}`
        );
    }
}

/** Checks that issued tokens work and that revoked ones do not. */
export async function tokensHold(writer: Writer, { client, violation }: Verification): Promise<void> {
    for (const [name, secret] of writer.secrets) {
        const { status, text } = await client.get('/api/auth/me', { token: secret });
        if (status !== 200) {
            violation(`The token ${name} was handed out and is answered ${status} ${text}`);
        }
    }
    for (const secret of writer.revoked.slice(-3)) {
        const { status, text } = await client.get('/api/auth/me', { token: secret });
        if (status !== 401) {
            violation(`A token that was revoked is answered ${status} ${text}`);
        }
    }
}

/** Checks that each host is served as its row says, and that names without a host are not served. */
export async function served(
    writers: readonly Writer[],
    upstreams: ReadonlyMap<string, string>,
    verification: Verification
): Promise<number> {
    const { httpPort, httpsPort, violation } = verification;
    const hosts = writers.flatMap((writer) =>
        [...writer.world.hosts.values()].map((host) => ({ host, certificates: writer.world.certificates }))
    );
    const checks = hosts.flatMap(({ host, certificates }) =>
        [host['domain'] as string, ...(host['aliases'] as readonly string[])].map((name) => async () => {
            const https = host['ssl'] === true && host['enabled'] === true;
            const site = { host: name, port: https ? httpsPort : httpPort, https };
            const answer = await ask(site).catch(async (error: unknown) => {
                const again = await ask(site).catch(String);
                if (https && isRefusedByChance(error) && typeof again !== 'string') {
                    return again;
                }
                violation(
                    `${name} gives no answer (${String(error)}), and then ${typeof again === 'string' ? again : again.status}; its row is ${JSON.stringify(host)}`
                );
                return null;
            });
            if (answer === null) {
                return;
            }
            const fault = faultOf(host, answer, upstreams);
            if (fault !== null) {
                violation(`${name} ${fault}; its row is ${JSON.stringify(host)}`);
            }
            const wanted = [...certificates.values()].find((each) => each['id'] === host['certificateId'])?.[
                'fingerprint256'
            ];
            if (
                https &&
                host['sslMode'] === 'certificate' &&
                answer.fingerprint?.replaceAll(':', '').toLowerCase() !== wanted
            ) {
                violation(`${name} shows another certificate than ${host['certificateId']}`);
            }
        })
    );
    const gone = writers.flatMap((writer) =>
        [...writer.gone].slice(-6).map((name) => async () => {
            const { status, body } = await ask({ host: name, port: httpPort, https: false });
            if (status !== 404) {
                violation(`${name} is no host any more and answers ${status} ${body.slice(0, 200)}`);
            }
        })
    );
    const queue = [...checks, ...gone];
    await Promise.all(
        Array.from({ length: atOnce }, async () => {
            for (let check = queue.pop(); check !== undefined; check = queue.pop()) {
                await check().catch((error: unknown) =>
                    violation(`A site gives no answer: ${String(error)}`)
                );
            }
        })
    );
    return checks.length;
}

/**
 * Whether the engine may have refused a handshake by chance. Caddy 2.6 gets certificates on demand behind a limit
 * that is off, and the limit still refuses when two names are asked for the first time at the same moment.
 */
function isRefusedByChance(error: unknown): boolean {
    return String(error).includes('alert internal error');
}

function faultOf(
    host: Fields,
    answer: { readonly status: number; readonly location: string; readonly body: string },
    upstreams: ReadonlyMap<string, string>
): string | null {
    const { status, location, body } = answer;
    if (host['enabled'] !== true) {
        return status === 404 ? null : `is disabled and answers ${status}`;
    }
    if (host['maintenance'] === true) {
        return status === 503 ? null : `is in maintenance and answers ${status}`;
    }
    if (host['type'] === 'redirect') {
        const { to, code } = host['redirect'] as { readonly to: string; readonly code: number };
        return status === code && location.startsWith(to)
            ? null
            : `answers ${status} to ${location}, and not ${code} to ${to}`;
    }
    const mark = `"name":"${upstreams.get(host['upstream'] as string)}"`;
    return status === 200 && body.includes(mark)
        ? null
        : `answers ${status} ${body.slice(0, 100)}, and not as its upstream ${mark}`;
}
