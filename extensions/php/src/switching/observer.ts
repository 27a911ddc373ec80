/** What is seen of a new release beside the old one: answers in its access log, deaths in its error log, and what a path answers. */
import type { Files } from '@portico/sdk';

import { logName, poolName } from '../config/render.ts';
import { askFastCgi } from '../fpm/fastcgi.ts';
import type { Masters } from '../fpm/masters.ts';
import { logsOf, readFrom, sizeOf } from '../logs/files.ts';
import type { Ctx } from '../settings.ts';
import { type Site, socketPath } from '../sites/site.ts';

/** Requests of a slot, and those of them that failed. */
export interface Counts {
    readonly requests: number;
    /** Answers with a status of 500 and above. */
    readonly errors: number;
}

/** What a path answers. */
interface Seen {
    readonly status: number;
    readonly type: string;
}

const probeMs = 10_000;
/** The fields of a line before the path, as `access.format` has them. */
const accessLine = /^\S+ \S+ (?<pool>\S+) (?<status>\d{3}) /;
const deadWorker = /\[pool (?<pool>\S+)\] (?<what>child \d+ exited on signal \d+.*)/;

/** Lines of a log from a place on. Both slots of a site write to the same log. */
class LogTail {
    readonly #logs: Files;
    readonly #name: string;
    #at: number;
    #rest = '';

    private constructor(logs: Files, name: string, at: number) {
        this.#logs = logs;
        this.#name = name;
        this.#at = at;
    }

    static async start(logs: Files, name: string): Promise<LogTail> {
        return new LogTail(logs, name, await sizeOf(logs, name));
    }

    /** The whole lines that were written since the last time. */
    async lines(): Promise<readonly string[]> {
        if ((await sizeOf(this.#logs, this.#name)) < this.#at) {
            this.#at = 0;
        }
        const all: string[] = [];
        for (;;) {
            const bytes = await readFrom(this.#logs, this.#name, this.#at);
            if (bytes.length === 0) {
                return all;
            }
            this.#at += bytes.length;
            const lines = (this.#rest + bytes.toString('utf8')).split('\n');
            this.#rest = lines.pop() ?? '';
            all.push(...lines);
        }
    }
}

/** Watches one slot from now on. */
export class SlotObserver {
    readonly #ctx: Ctx;
    readonly #site: Site;
    readonly #slot: number;
    readonly #access: LogTail;
    readonly #errorLog: LogTail;
    #requests = 0;
    #errors = 0;
    /** Requests of the observer itself. */
    #own = 0;

    private constructor(ctx: Ctx, site: Site, slot: number, [access, errorLog]: readonly [LogTail, LogTail]) {
        this.#ctx = ctx;
        this.#site = site;
        this.#slot = slot;
        this.#access = access;
        this.#errorLog = errorLog;
    }

    static async start(ctx: Ctx, site: Site, slot: number): Promise<SlotObserver> {
        const logs = logsOf(ctx, site);
        return new SlotObserver(ctx, site, slot, [
            await LogTail.start(logs, logName('access')),
            await LogTail.start(logs, logName('error'))
        ]);
    }

    /** Asks for a path past the engine, as a visitor would. @throws Error without an answer */
    async ask(path: string): Promise<Seen> {
        const { folder, root, domain } = this.#site;
        this.#own += 1;
        const [plain = '/', query = ''] = path.split('?', 2);
        const script = await this.#script(plain);
        const { status, headers } = await askFastCgi(this.#ctx, socketPath(this.#site, this.#slot), {
            script: `${folder}/${root}${script}`,
            path: script,
            query,
            host: domain,
            timeoutMs: probeMs,
            params: { DOCUMENT_ROOT: `${folder}/${root}`, REQUEST_URI: path }
        });
        return { status, type: headers['content-type'] ?? '' };
    }

    /** Counts what was written since the last time. */
    async count(): Promise<Counts> {
        const answers = this.#ofSlot(await this.#access.lines(), accessLine);
        this.#requests += answers.length;
        this.#errors += answers.filter(({ status }) => Number(status) >= 500).length;
        return { requests: Math.max(0, this.#requests - this.#own), errors: this.#errors };
    }

    /** Lines that tell of workers that died since the last time. */
    async deaths(): Promise<readonly string[]> {
        return this.#ofSlot(await this.#errorLog.lines(), deadWorker).map(({ what = '' }) => what);
    }

    #ofSlot(lines: readonly string[], form: RegExp): readonly Readonly<Record<string, string | undefined>>[] {
        return lines
            .map((line) => form.exec(line)?.groups ?? {})
            .filter(({ pool }) => pool === poolName(this.#slot));
    }

    /** The script that answers a path: the file itself, the index of a folder, or the front controller. */
    async #script(path: string): Promise<string> {
        const { folder, root } = this.#site;
        const files = this.#ctx.files(folder);
        const isFile = (inner: string): Promise<boolean> =>
            files.stat(`${root}${inner}`).then(
                ({ type }) => type === 'file',
                () => false
            );
        const index = `${path.replace(/\/+$/, '')}/index.php`;
        return path.endsWith('.php') && (await isFile(path))
            ? path
            : (await isFile(index))
              ? index
              : '/index.php';
    }
}

/** Judges a new release by what was seen of it; null while there is nothing against it. */
export class Judge {
    readonly #old: SlotObserver;
    readonly #new: SlotObserver;
    readonly #path: string;
    readonly #maxErrors: number;
    #expected: Seen | null = null;

    constructor(
        before: SlotObserver,
        after: SlotObserver,
        { path, maxErrors }: { readonly path: string; readonly maxErrors: number }
    ) {
        this.#old = before;
        this.#new = after;
        this.#path = path;
        this.#maxErrors = maxErrors;
    }

    /** What speaks against the new release, and how many requests it has answered. */
    async judge(
        masters: Masters,
        site: Site,
        slot: number
    ): Promise<Counts & { readonly against: string | null }> {
        this.#expected ??= await this.#old.ask(this.#path);
        const seen = await this.#new.ask(this.#path).catch((error: unknown) => String(error));
        const [before, now] = [await this.#old.count(), await this.#new.count()];
        const [death] = await this.#new.deaths();
        const info = await masters.info(site, slot);
        const rate = before.requests === 0 ? 0 : before.errors / before.requests;
        const against =
            typeof seen === 'string'
                ? `${this.#path} is not answered: ${seen}`
                : seen.status !== this.#expected.status || seen.type !== this.#expected.type
                  ? `${this.#path} answers ${said(seen)}, and ${said(this.#expected)} before`
                  : info === null || info.state !== 'running' || info.exits > 0
                    ? 'its PHP-FPM ended by itself'
                    : death !== undefined
                      ? `a worker died: ${death}`
                      : now.errors > this.#maxErrors + rate * now.requests
                        ? `${now.errors} of ${now.requests} requests failed, and ${before.errors} of ${before.requests} before`
                        : null;
        return { ...now, against };
    }
}

function said({ status, type }: Seen): string {
    return type === '' ? String(status) : `${status} (${type})`;
}
