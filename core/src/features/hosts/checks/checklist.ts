/**
 * The checklist of a host, from its name to its upstream. All points are tried for real and at the same time, within a few seconds. A point
 * that cannot be tried has `ok: null`; the checklist itself never fails.
 */
import { Resolver } from 'node:dns/promises';
import { networkInterfaces } from 'node:os';

import type { Engine } from '../../../engine/change.ts';
import type { Site } from '../../../engine/site.ts';
import type { Readable } from '../rules/paths.ts';
import { dialled } from '../rules/safety.ts';
import { answerOf, connects, type Handshake, handshake, sameAnswer } from './probe.ts';

/** One point of the checklist, as the API shows it. */
export interface CheckItem {
    readonly id: 'dns' | 'address' | 'engine' | 'certificate' | 'upstream';
    readonly title: string;
    /** null: could not be tried, or does not apply. */
    readonly ok: boolean | null;
    /** What was seen. */
    readonly evidence: string;
    /** What to do about it; null when there is nothing to do. */
    readonly remedy: string | null;
}

/** What the checklist needs from outside. */
export interface ChecklistPorts {
    readonly engine: Pick<Engine, 'draft' | 'process' | 'stateOf'>;
    readonly readable: Readable;
    /** The setting `dns.nameservers`, as `address` or `address:port`. Empty: the name servers of the system. */
    nameservers(): readonly string[];
    /** The settings `server.ipv4` and `server.ipv6`. Empty: the addresses of the machine's interfaces. */
    addresses(): readonly string[];
}

/** Runs the checklist of one host. */
export type Checklist = (id: number, signal: AbortSignal) => Promise<readonly CheckItem[]>;

const timeLimitMs = 5_000;
const probeTimeoutMs = 3_500;
/** At most so many upstreams are tried, which is enough to see what is wrong. */
const mostTargets = 16;
const dayMs = 86_400_000;

const titles = {
    dns: 'The name resolves',
    address: 'The name points here',
    engine: 'The engine serves the host',
    certificate: 'The certificate is valid',
    upstream: 'The upstream answers'
} as const;

type Verdict = Pick<CheckItem, 'ok' | 'evidence' | 'remedy'>;

/** Makes the function that checks one host from its DNS names to the answer of its upstream. */
export function createChecklist(ports: ChecklistPorts): Checklist {
    return async (id, signal) => {
        const row = ports.engine.draft().hosts.get(id);
        if (row === undefined) {
            return [];
        }
        const { site } = row;
        const name = site.domain.replace(/^\*\./, 'portico-check.');
        const { httpPort, httpsPort } = ports.engine.draft().settings;
        const ends = AbortSignal.any([signal, AbortSignal.timeout(timeLimitMs)]);
        const found = resolve(name, ports.nameservers());
        const shaken: Promise<Handshake | null> =
            site.ssl && site.enabled ? handshake(httpsPort, name, probeTimeoutMs) : Promise.resolve(null);
        const verdicts: Readonly<Record<CheckItem['id'], Promise<Verdict>>> = {
            dns: found.then((result) => nameVerdict(name, result)),
            address: found.then((result) => addressVerdict(result, ports.addresses())),
            engine: engineVerdict(site, name, site.ssl ? httpsPort : httpPort, ports),
            certificate: shaken.then((result) => certificateVerdict(site, name, result)),
            upstream: upstreamVerdict(site, ports.readable)
        };
        return Promise.all(
            Object.entries(verdicts).map(async ([key, work]) => {
                const item = key as CheckItem['id'];
                return { id: item, title: titles[item], ...(await bounded(work, ends)) };
            })
        );
    };
}

/** The verdict, or why there is none: a point that is slow or breaks does not stop the others. */
async function bounded(work: Promise<Verdict>, signal: AbortSignal): Promise<Verdict> {
    let stop = (): void => undefined;
    const ended = new Promise<Verdict>((done) => {
        stop = () => done({ ok: null, evidence: 'There was no result in time', remedy: 'Try again' });
        signal.addEventListener('abort', stop, { once: true });
        if (signal.aborted) {
            stop();
        }
    });
    try {
        return await Promise.race([
            work.catch((error: unknown) => ({
                ok: null,
                evidence: `It could not be tried: ${(error as Error).message}`,
                remedy: null
            })),
            ended
        ]);
    } finally {
        signal.removeEventListener('abort', stop);
    }
}

interface Resolved {
    readonly addresses: readonly string[];
    /** Why there are none. */
    readonly problem: string | null;
}

async function resolve(name: string, nameservers: readonly string[]): Promise<Resolved> {
    const resolver = new Resolver({ timeout: probeTimeoutMs / 2, tries: 2 });
    if (nameservers.length > 0) {
        resolver.setServers([...nameservers]);
    }
    const outcomes = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    const addresses = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? outcome.value : []));
    const failure = outcomes.find((outcome) => outcome.status === 'rejected')?.reason as
        { code?: string } | undefined;
    return { addresses, problem: addresses.length > 0 ? null : (failure?.code ?? 'no addresses') };
}

function nameVerdict(name: string, { addresses, problem }: Resolved): Verdict {
    if (problem === null) {
        return { ok: true, evidence: `${name} resolves to ${addresses.join(', ')}`, remedy: null };
    }
    const missing = problem === 'ENOTFOUND' || problem === 'ENODATA';
    return missing
        ? {
              ok: false,
              evidence: `${name} has no address (${problem})`,
              remedy: `Create an A or AAAA record for ${name}`
          }
        : {
              ok: null,
              evidence: `The name servers gave no answer about ${name} (${problem})`,
              remedy: 'Check the setting dns.nameservers'
          };
}

function addressVerdict({ addresses, problem }: Resolved, known: readonly string[]): Verdict {
    if (problem !== null) {
        return { ok: null, evidence: 'The name does not resolve', remedy: null };
    }
    const own =
        known.length > 0
            ? known
            : Object.values(networkInterfaces()).flatMap((list) =>
                  (list ?? []).map(({ address }) => address)
              );
    const foreign = addresses.filter((address) => !own.includes(address));
    if (foreign.length === 0) {
        return {
            ok: true,
            evidence: `Every address is this server's: ${addresses.join(', ')}`,
            remedy: null
        };
    }
    return {
        ok: false,
        evidence: `${foreign.join(', ')} ${foreign.length === 1 ? 'is' : 'are'} not known to be this server's`,
        remedy: `Let the name point to ${known.length > 0 ? known.join(' or ') : 'this server'}, or set server.ipv4 and server.ipv6 if this server has those addresses outside`
    };
}

async function engineVerdict(
    site: Site,
    name: string,
    port: number,
    { engine }: ChecklistPorts
): Promise<Verdict> {
    const row = engine.draft().hosts.get(site.id);
    const { state, message } = engine.process();
    if (state !== 'running') {
        return {
            ok: false,
            evidence: message ?? `The engine is ${state}`,
            remedy: 'See GET /api/proxyengine/status'
        };
    }
    if (!site.enabled) {
        return { ok: null, evidence: 'The host is disabled', remedy: null };
    }
    const standing = row === undefined ? null : engine.stateOf(row);
    if (standing?.state === 'pending') {
        return {
            ok: false,
            evidence: standing.message ?? 'The change has not reached the engine yet',
            remedy: 'POST /api/proxyengine/reload'
        };
    }
    const [answer, stranger] = await Promise.all([
        answerOf(port, site.ssl, name, probeTimeoutMs),
        answerOf(port, false, `${crypto.randomUUID()}.invalid`, probeTimeoutMs)
    ]);
    if (typeof answer === 'string') {
        return {
            ok: false,
            evidence: `Port ${port} on this server: ${answer}`,
            remedy: 'See GET /api/proxyengine/logs'
        };
    }
    if (!site.ssl && typeof stranger !== 'string' && sameAnswer(answer, stranger)) {
        return {
            ok: false,
            evidence: `${name} is answered like an unknown name (${answer.status})`,
            remedy: 'POST /api/proxyengine/reload'
        };
    }
    return {
        ok: true,
        evidence: `${site.ssl ? 'https' : 'http'} on port ${port} answers ${answer.status}`,
        remedy: null
    };
}

function certificateVerdict(site: Site, name: string, result: Handshake | null): Verdict {
    if (result === null) {
        return {
            ok: null,
            evidence: site.ssl ? 'The host is disabled' : 'The host has no HTTPS',
            remedy: null
        };
    }
    if (typeof result === 'string') {
        return {
            ok: false,
            evidence: `No certificate is served for ${name}: ${result}`,
            remedy:
                site.sslMode === 'auto'
                    ? 'The engine needs to be reached from the internet on port 80 or 443: see GET /api/proxyengine/logs'
                    : 'See GET /api/proxyengine/logs'
        };
    }
    const evidence = `Issued by ${result.issuer}, valid until ${result.notAfter.toISOString()}`;
    const left = result.notAfter.getTime() - Date.now();
    if (!result.matches) {
        return {
            ok: false,
            evidence: `${evidence}, but not for ${name}`,
            remedy: 'Use a certificate that covers every name of the host'
        };
    }
    return left > 0
        ? { ok: true, evidence: `${evidence} (${Math.floor(left / dayMs)} days left)`, remedy: null }
        : { ok: false, evidence: `${evidence}: expired`, remedy: 'Replace the certificate' };
}

async function upstreamVerdict(site: Site, readable: Readable): Promise<Verdict> {
    if (site.static !== null && site.locations.length === 0) {
        const fault = await readable(site.static.root);
        return fault === null
            ? { ok: true, evidence: `${site.static.root} can be read`, remedy: null }
            : {
                  ok: false,
                  evidence: `${site.static.root} ${fault}`,
                  remedy: "Give the engine's user the right to read it"
              };
    }
    const targets = dialled(site).slice(0, mostTargets);
    if (targets.length === 0) {
        return { ok: null, evidence: 'The host sends nowhere', remedy: null };
    }
    const outcomes = await Promise.all(
        targets.map(async ({ address }) => ({
            text: address.text,
            problem: await connects(address, probeTimeoutMs)
        }))
    );
    const failed = outcomes.filter(({ problem }) => problem !== null);
    return failed.length === 0
        ? { ok: true, evidence: `Connected to ${outcomes.map(({ text }) => text).join(', ')}`, remedy: null }
        : {
              ok: false,
              evidence: failed.map(({ text, problem }) => `${text}: ${problem}`).join('; '),
              remedy: 'Start the upstream, or correct its address'
          };
}
