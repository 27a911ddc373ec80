/** Loads servers with wrk in rounds that alternate, and measures what each request costs the server's process. */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { get } from 'node:http';

import { median } from '../report.ts';

/** One of the servers that are compared. */
export interface Variant {
    readonly url: string;
    readonly headers?: Readonly<Record<string, string>>;
    /** The process whose processor time is counted. */
    readonly pid: number;
    /** The status that every answer must have; default 200. */
    readonly status?: number;
    /** Path of a script of wrk that makes the requests; default: GET of the address. */
    readonly script?: string;
}

export interface Measured {
    readonly rate: number;
    /** Milliseconds. */
    readonly p50: number;
    readonly p99: number;
    /** Processor time of the server for one request, in microseconds. */
    readonly cpu: number;
    /** Number of answers other than 2xx and 3xx. */
    readonly failures: number;
    /** Number of connections that were cut. */
    readonly cut: number;
}

export interface Compared {
    readonly rounds: readonly Measured[];
    /** Medians. */
    readonly rate: number;
    readonly p99: number;
    readonly cpu: number;
}

/** Processor time of a process, in microseconds. */
export function cpuOf(pid: number): number {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
        .replace(/^.*\)\s/s, '')
        .split(' ');
    return (Number(fields[11]) + Number(fields[12])) * 10_000;
}

/** Resident memory of a process, in MB. */
export function memoryOf(pid: number): number {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

/** Runs wrk once. @throws Error when it cannot run */
export function wrk({
    url,
    headers = {},
    seconds,
    connections = 64,
    script
}: {
    readonly url: string;
    readonly headers?: Readonly<Record<string, string>>;
    readonly seconds: number;
    readonly connections?: number;
    readonly script?: string | undefined;
}): Promise<Omit<Measured, 'cpu'> & { readonly requests: number }> {
    // wrk replaces its own header only when it has exactly this spelling.
    const named = Object.entries(headers).flatMap(([name, value]) => [
        '-H',
        `${name === 'host' ? 'Host' : name}: ${value}`
    ]);
    return new Promise((resolve, reject) => {
        const child = spawn(
            'wrk',
            [
                '-t1',
                `-c${connections}`,
                `-d${seconds}s`,
                '--timeout',
                '30s',
                '--latency',
                ...named,
                ...(script === undefined ? [] : ['-s', script]),
                url
            ],
            { stdio: ['ignore', 'pipe', 'inherit'] }
        );
        let text = '';
        child.stdout.on('data', (chunk: Buffer) => {
            text += chunk.toString();
        });
        child.once('error', reject);
        child.once('exit', () => {
            const read = (pattern: RegExp): string => pattern.exec(text)?.[1] ?? '0';
            const sockets =
                /Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)/
                    .exec(text)
                    ?.slice(1)
                    .map(Number) ?? [];
            resolve({
                rate: Number(read(/Requests\/sec:\s+([\d.]+)/)),
                requests: Number(read(/(\d+) requests in/)),
                p50: time(read(/50%\s+(\S+)/)),
                p99: time(read(/99%\s+(\S+)/)),
                failures: Number(read(/Non-2xx or 3xx responses: (\d+)/)),
                cut: sockets.reduce((sum, count) => sum + count, 0)
            });
        });
    });
}

function time(text: string): number {
    const value = Number.parseFloat(text);
    return text.endsWith('us') ? value / 1000 : text.endsWith('ms') ? value : value * 1000;
}

/** The status of one answer on a connection of its own. Unlike `fetch`, it can send any Host header. */
export function statusOf(url: string, headers: Readonly<Record<string, string>> = {}): Promise<number> {
    return new Promise((resolve, reject) => {
        get(url, { agent: false, headers }, (answer) => {
            answer.resume();
            answer.once('end', () => resolve(answer.statusCode ?? 0));
        }).once('error', reject);
    });
}

/** Loads every variant in each round; the order differs from round to round. */
export async function compare<K extends string>(
    variants: Readonly<Record<K, Variant>>,
    { rounds = 3, seconds = 2, connections = 64 } = {}
): Promise<Readonly<Record<K, Compared>>> {
    const names = Object.keys(variants) as K[];
    const measured = new Map<K, Measured[]>(names.map((name) => [name, []]));
    for (const name of names) {
        const { url, headers = {}, status = 200, script } = variants[name];
        const found = script === undefined ? await statusOf(url, headers) : status;
        if (found !== status) {
            throw new Error(`${name} answers ${found}`);
        }
        await wrk({ url, headers, seconds: 1, connections, script });
    }
    for (let round = 0; round < rounds; round += 1) {
        for (const name of round % 2 === 0 ? names : names.toReversed()) {
            const variant = variants[name];
            const before = cpuOf(variant.pid);
            const { requests, ...run } = await wrk({
                url: variant.url,
                headers: variant.headers ?? {},
                seconds,
                connections,
                script: variant.script
            });
            if ((variant.status ?? 200) < 400 && run.failures > 0) {
                throw new Error(`${run.failures} of ${requests} answers of ${name} are failures`);
            }
            measured.get(name)?.push({ ...run, cpu: (cpuOf(variant.pid) - before) / Math.max(1, requests) });
        }
    }
    const middle = (runs: readonly Measured[], key: 'rate' | 'p99' | 'cpu'): number =>
        median(runs.map((run) => run[key]));
    return Object.fromEntries(
        names.map((name) => {
            const runs = measured.get(name) ?? [];
            return [
                name,
                {
                    rounds: runs,
                    rate: middle(runs, 'rate'),
                    p99: middle(runs, 'p99'),
                    cpu: middle(runs, 'cpu')
                }
            ];
        })
    ) as Record<string, Compared> as Record<K, Compared>; // the names are its keys
}

/** The median over the rounds of one variant's figure divided by another's. */
export function ratio(ours: Compared, bare: Compared, key: 'rate' | 'p99' | 'cpu' = 'rate'): number {
    return median(ours.rounds.map((run, index) => run[key] / (bare.rounds[index]?.[key] ?? NaN)));
}
