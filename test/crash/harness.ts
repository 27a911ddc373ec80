/** The crash harness: clients change and visit a panel, which is killed in each round. Afterwards its state is compared with what it acknowledged. */
import { setTimeout as wait } from 'node:timers/promises';

import type { Client } from '../support/panel/client.ts';
import { createPanelProcess, type PanelProcess, processPassword } from '../support/panel/process.ts';
import { selfSigned } from '../support/servers/self-signed.ts';
import { startUpstream, type TestUpstream } from '../support/servers/upstream.ts';
import { type Contenders, createContenders } from './clients/contenders.ts';
import type { Material } from './clients/operations.ts';
import { type Site, startVisitors, type Visitors } from './clients/visitors.ts';
import { emptyWorld } from './clients/world.ts';
import { Writer } from './clients/writer.ts';
import { nemeses, type Nemesis, type NemesisName } from './nemesis.ts';
import type { Random } from './random.ts';
import { cutRestore } from './restore.ts';
import {
    chainHolds,
    list,
    noDrift,
    readWorlds,
    recorded,
    retries,
    served,
    settled,
    tokensHold,
    type Verification
} from './verify.ts';

export interface Round {
    readonly nemesis: string;
    readonly acknowledged: number;
    /** Number of changes that got no answer, and how many of them took effect. */
    readonly unknown: number;
    readonly acted: number;
    /** Milliseconds until the panel was ready again; null when it was not restarted. */
    readonly ready: number | null;
    readonly visits: number;
    readonly cut: number;
    readonly longestGap: number;
    /** Number of names whose traffic was checked. */
    readonly names: number;
    readonly violations: readonly string[];
}

export interface Harness {
    readonly panel: PanelProcess;
    round(name?: NemesisName): Promise<Round>;
    close(): Promise<void>;
}

const settings = [
    { key: 'engine.acmeEmail', value: (n: number) => `round${n}@crash.test` },
    { key: 'audit.retentionDays', value: (n: number) => 300 + (n % 3_000) },
    { key: 'server.ipv4', value: (n: number) => `192.0.2.${(n % 250) + 1}` },
    { key: 'panel.url', value: (n: number) => `https://panel.test/${n}` }
] as const;
const steadySites = 4;
const contendedHosts = 2;
/** An older session logs in again before it stops being fresh. */
const sessionMs = 8 * 60_000;
/** The share of rounds that end with an interrupted restore. */
const restoreShare = 0.06;
/** A reload of an old engine closes kept connections and, rarely, refuses a new one. */
const mostCutShare = 0.02;

export async function createHarness(random: Random, writerCount = 4): Promise<Harness> {
    const panel = await createPanelProcess();
    const upstreams = await Promise.all(['one', 'two', 'three'].map((name) => startUpstream(name)));
    try {
        await panel.start();
        const run = new Run(panel, random, upstreams, writerCount);
        await run.prepare();
        return run;
    } catch (error) {
        await panel.close();
        await Promise.all(upstreams.map((upstream) => upstream.close()));
        throw error;
    }
}

class Run implements Harness {
    readonly panel: PanelProcess;
    readonly #random: Random;
    readonly #upstreams: readonly TestUpstream[];
    readonly #writers: Writer[] = [];
    readonly #clients: Client[] = [];
    readonly #owners = new Map<string, string>();
    readonly #known = new Set(['users admin']);
    #admin!: Client;
    #contenders!: Contenders;
    #visitors!: Visitors;
    #violations: string[] = [];
    #waiting: (() => void)[] = [];
    #loggedIn = 0;
    readonly #writerCount: number;

    constructor(
        panel: PanelProcess,
        random: Random,
        upstreams: readonly TestUpstream[],
        writerCount: number
    ) {
        this.panel = panel;
        this.#random = random;
        this.#upstreams = upstreams;
        this.#writerCount = writerCount;
    }

    async prepare(): Promise<void> {
        this.#admin = await this.panel.login();
        for (let index = 0; index < this.#writerCount; index += 1) {
            await this.#addWriter(`w${index}`, settings[index % settings.length] as Material['setting']);
        }
        const contended = [await this.panel.login(), await this.panel.login()];
        this.#clients.push(...contended);
        const sites = await this.#makeSites();
        const rows = (await list(this.#admin, '/api/hosts')).filter(({ domain }) =>
            String(domain).startsWith('contended')
        );
        this.#contenders = createContenders(rows, contended, this.#random, (text) =>
            this.#violations.push(text)
        );
        this.#loggedIn = Date.now();
        this.#visitors = startVisitors(sites);
        this.#visitors.take();
    }

    async round(
        name: NemesisName = this.#random.weighted(
            Object.fromEntries(Object.entries(nemeses).map(([key, { weight }]) => [key, weight])) as Record<
                NemesisName,
                number
            >
        )
    ): Promise<Round> {
        this.#violations = [];
        await this.#refresh();
        const since = new Date(Date.now() - 1_000).toISOString();
        for (const writer of this.#writers) {
            writer.acknowledged = [];
        }
        this.#visitors.take();
        const { ready, contended } = await this.#strike(nemeses[name]);
        const visits = this.#visitors.take();
        this.#judge(visits, nemeses[name]);
        const result = await this.#verify(since, (nemeses[name] as Nemesis).isPolite === true);
        if (this.#random.chance(restoreShare)) {
            await this.#restore();
        }
        const after = this.#visitors.take();
        this.#judge(after, nemeses[name]);
        return {
            nemesis: name,
            ready,
            ...result,
            acknowledged: result.acknowledged + contended,
            visits: visits.answered + after.answered,
            cut: visits.cut.length + after.cut.length,
            longestGap: Math.max(visits.longestGap, after.longestGap),
            violations: this.#violations
        };
    }

    async close(): Promise<void> {
        await this.#visitors.close();
        await this.panel.close();
        await Promise.all(this.#upstreams.map((upstream) => upstream.close()));
    }

    async #strike(nemesis: Nemesis): Promise<{ readonly ready: number | null; readonly contended: number }> {
        let stopped = false;
        const working = this.#writers.map((writer) => writer.run(() => stopped));
        const contended = this.#contenders.run(() => stopped);
        let over = false;
        void Promise.all(working).then(() => {
            over = true;
            this.#wake();
        });
        const ready = await nemesis.strike({
            panel: this.panel,
            admin: this.#admin,
            random: this.#random,
            violation: (text) => void this.#violations.push(text),
            nextChange: () =>
                over ? Promise.resolve() : new Promise((resolve) => this.#waiting.push(resolve))
        });
        stopped = true;
        await Promise.all(working);
        return { ready, contended: await contended };
    }

    async #verify(
        since: string,
        isPolite: boolean
    ): Promise<Pick<Round, 'acknowledged' | 'unknown' | 'acted' | 'names'>> {
        const verification: Verification = {
            client: this.#admin,
            httpPort: this.panel.httpPort,
            httpsPort: this.panel.httpsPort,
            random: this.#random,
            violation: (text) => void this.#violations.push(text)
        };
        await settled(verification);
        const { worlds, strangers } = await readWorlds(
            this.#admin,
            this.#writers.map(({ material }) => material.prefix),
            this.#owners
        );
        const unexpected = strangers.filter((name) => !this.#known.has(name));
        if (unexpected.length > 0) {
            this.#violations.push(`No writer made ${unexpected.join(', ')}`);
        }
        this.#contenders.settle(
            (await list(this.#admin, '/api/hosts')).filter(({ domain }) =>
                this.#contenders.domains.includes(String(domain))
            )
        );
        const unanswered = this.#writers.map((writer) => {
            const { open } = writer;
            const acted = writer.settle(worlds.get(writer.material.prefix) ?? emptyWorld);
            // A connection that the kernel had not handed over yet may be reset. Every request that the panel has begun must be answered.
            if (isPolite && open !== null && (acted === true || !writer.cause.includes('ECONNRESET'))) {
                this.#violations.push(
                    `A panel that ended politely left ${open.operation.name} without an answer: ${writer.cause}`
                );
            }
            writer.open = null;
            return { writer, open, acted };
        });
        const made = new Set(
            this.#writers.flatMap((writer) => writer.acknowledged.map(({ requestId }) => requestId))
        );
        const ids = (acted: boolean): string[] =>
            unanswered.flatMap((each) =>
                each.open !== null && each.acted === acted ? [each.open.requestId] : []
            );
        await recorded(verification, since, new Set([...made, ...ids(true)]), new Set(ids(false)));
        await noDrift(verification);
        await chainHolds(verification);
        for (const { writer, ...open } of unanswered) {
            await retries(writer, open, verification);
            await tokensHold(writer, verification);
        }
        const names = await served(this.#writers, this.#names(), verification);
        return {
            acknowledged: made.size,
            unknown: unanswered.filter(({ open }) => open !== null).length,
            acted: ids(true).length,
            names
        };
    }

    async #restore(): Promise<void> {
        const violation = (text: string): void => void this.#violations.push(text);
        await cutRestore(
            this.panel,
            this.#admin,
            this.#random,
            async () => {
                let stopped = false;
                const working = this.#writers.map((writer) => writer.run(() => stopped));
                await wait(this.#random.between(100, 1_200));
                stopped = true;
                await Promise.all(working);
            },
            violation
        );
        const verification: Verification = {
            client: this.#admin,
            httpPort: this.panel.httpPort,
            httpsPort: this.panel.httpsPort,
            random: this.#random,
            violation
        };
        await settled(verification);
        await noDrift(verification);
        await chainHolds(verification);
        const { worlds } = await readWorlds(
            this.#admin,
            this.#writers.map(({ material }) => material.prefix),
            this.#owners
        );
        for (const writer of this.#writers) {
            writer.take(worlds.get(writer.material.prefix) ?? emptyWorld);
        }
        this.#contenders.adopt(await list(this.#admin, '/api/hosts'));
        await served(this.#writers, this.#names(), verification);
    }

    #names(): ReadonlyMap<string, string> {
        return new Map(
            this.#upstreams.map(({ address }, index) => [address, ['one', 'two', 'three'][index] ?? ''])
        );
    }

    #judge({ wrong, cut, refused, answered }: ReturnType<Visitors['take']>, { hitsEngine }: Nemesis): void {
        if (wrong.length > 0) {
            this.#violations.push(
                `${wrong.length} visitors got a wrong answer: ${wrong.slice(0, 3).join('; ')}`
            );
        }
        if (hitsEngine !== true && refused > 0) {
            this.#violations.push(`${refused} visitors were refused although the engine was left alone`);
        }
        if (hitsEngine !== true && cut.length > Math.max(5, answered * mostCutShare)) {
            this.#violations.push(
                `${cut.length} of ${answered} visits were cut: ${[...new Set(cut)].join('; ')}`
            );
        }
    }

    async #addWriter(prefix: string, setting: Material['setting']): Promise<void> {
        let serial = 0;
        const certificates = [0, 1].map(() => selfSigned([`*.${prefix}.crash.test`]));
        const client = await this.panel.login();
        this.#clients.push(client);
        this.#owners.set(setting.key, prefix);
        const writer = new Writer({
            material: {
                prefix,
                upstreams: this.#upstreams.map(({ address }) => address),
                certificates,
                setting,
                serial: () => (serial += 1)
            },
            random: this.#random,
            client,
            sending: () => this.#wake(),
            violation: (text) => void this.#violations.push(text)
        });
        const { data } = await client.get(`/api/settings/${setting.key}`);
        writer.take({
            ...emptyWorld,
            settings: new Map([[setting.key, { key: setting.key, value: data.value, version: data.version }]])
        });
        this.#writers.push(writer);
    }

    async #makeSites(): Promise<readonly Site[]> {
        const made = async (body: Readonly<Record<string, unknown>>): Promise<void> => {
            const { status, text } = await this.#admin.post('/api/hosts', body);
            if (status !== 201) {
                throw new Error(`A site could not be made: ${text}`);
            }
            this.#known.add(`hosts ${String(body['domain'])}`);
        };
        for (let index = 0; index < contendedHosts; index += 1) {
            await made({
                domain: `contended${index}.crash.test`,
                upstream: this.#upstreams[0]?.address,
                notes: 'contended 0'
            });
        }
        const sites: Site[] = [];
        for (let index = 0; index < steadySites; index += 1) {
            const https = index === steadySites - 1;
            const upstream = this.#upstreams[index % this.#upstreams.length] as TestUpstream;
            const host = `steady${index}.crash.test`;
            await made({
                domain: host,
                upstream: upstream.address,
                compression: index === 1,
                securityHeaders: index === 2,
                ...(https ? { ssl: true, sslMode: 'internal' } : {})
            });
            sites.push({
                host,
                port: https ? this.panel.httpsPort : this.panel.httpPort,
                https,
                mark: `"name":"${['one', 'two', 'three'][index % 3]}"`
            });
        }
        return sites;
    }

    /** Sessions survive crashes of the panel. They are renewed only because of their age. */
    async #refresh(): Promise<void> {
        if (Date.now() - this.#loggedIn < sessionMs) {
            return;
        }
        for (const client of [this.#admin, ...this.#clients]) {
            const { data, text } = await client.login('admin', processPassword);
            if (typeof data?.token !== 'string') {
                throw new Error(`admin could not log in again: ${text}`);
            }
            await client.post('/api/auth/logout');
            client.token = data.token as string;
            await wait(50);
        }
        this.#loggedIn = Date.now();
    }

    #wake(): void {
        for (const resolve of this.#waiting.splice(0)) {
            resolve();
        }
    }
}
