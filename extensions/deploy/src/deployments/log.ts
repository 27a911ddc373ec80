/** Logs of deployments: files in the plugin's own folder, which readers follow without holding them in memory. */
import type { FileHandle } from 'node:fs/promises';

import { type Bytes, type Files, isFailure } from '@portico/sdk';

import type { Ctx } from '../settings.ts';
import { Mask } from './mask.ts';
import type { StepName } from './steps.ts';

/** One line of a log. */
export interface LogLine {
    readonly at: string;
    readonly step?: StepName;
    readonly stream: 'stdout' | 'stderr' | 'panel';
    readonly text: string;
}

/** A line with the offset behind it, from which a reader goes on. */
export interface PlacedLine {
    readonly offset: number;
    readonly line: LogLine;
}

/** A longer line becomes several. */
const longestLine = 8_192;
const readBytes = 65_536;
/** So much is gathered before it is written. */
const writeBytes = 65_536;

/** The log that a deployment writes. */
export class DeploymentLog {
    readonly #file: FileHandle;
    readonly #limit: number;
    readonly #changed: () => void;
    #mask = new Mask([]);
    #pending = '';
    #written = 0;
    #full = false;
    #scheduled = false;
    #flushed: Promise<void> = Promise.resolve();

    constructor(file: FileHandle, written: number, limit: number, changed: () => void) {
        this.#file = file;
        this.#written = written;
        this.#limit = limit;
        this.#changed = changed;
    }

    /** Texts that no line shows from now on. */
    hide(secrets: readonly string[]): void {
        this.#mask = new Mask(secrets);
    }

    /** Adds a line of the plugin's own. */
    say(text: string, step?: StepName): void {
        this.#add({ stream: 'panel', text: this.#mask.clean(text) }, step);
    }

    /** Adds all lines of a program's output as they come. Resolves at the end of it. */
    async read(stream: Bytes, name: 'stdout' | 'stderr', step: StepName): Promise<void> {
        const decoder = new TextDecoder();
        let rest = '';
        for await (const chunk of stream) {
            rest += decoder.decode(chunk, { stream: true });
            const lines = rest.split('\n');
            rest = lines.pop() ?? '';
            for (const line of lines) {
                this.#lines(line, name, step);
            }
            if (rest.length > longestLine * 2) {
                this.#lines(rest, name, step);
                rest = '';
            }
            // A program that prints faster than the disk takes it waits here.
            await this.#flushed;
        }
        if (rest !== '') {
            this.#lines(rest, name, step);
        }
    }

    /** Writes what is gathered. */
    async close(): Promise<void> {
        this.#flush();
        await this.#flushed;
        await this.#file.close();
        this.#changed();
    }

    /** Writes a line that a program printed elsewhere. */
    print(line: string, stream: 'stdout' | 'stderr', step: StepName): void {
        this.#lines(line, stream, step);
    }

    #lines(line: string, stream: 'stdout' | 'stderr', step: StepName): void {
        const clean = this.#mask.clean(line.replace(/\r$/, ''));
        for (let at = 0; at === 0 || at < clean.length; at += longestLine) {
            this.#add({ stream, text: clean.slice(at, at + longestLine) }, step);
        }
    }

    #add(line: Pick<LogLine, 'stream' | 'text'>, step: StepName | undefined): void {
        const said: LogLine = {
            at: new Date().toISOString(),
            ...(step === undefined ? {} : { step }),
            ...line
        };
        if (line.stream !== 'panel') {
            if (this.#full) {
                return;
            }
            if (this.#written + this.#pending.length > this.#limit) {
                this.#full = true;
                this.say('The log is full; further output is left out', step);
                return;
            }
        }
        this.#pending += `${JSON.stringify(said)}\n`;
        if (this.#pending.length > writeBytes) {
            this.#flush();
        } else if (!this.#scheduled) {
            this.#scheduled = true;
            setImmediate(() => {
                this.#scheduled = false;
                this.#flush();
            });
        }
    }

    /** Appends what is gathered, behind what is being written. */
    #flush(): void {
        if (this.#pending === '') {
            return;
        }
        const bytes = Buffer.from(this.#pending);
        this.#pending = '';
        this.#written += bytes.length;
        this.#flushed = this.#flushed.then(async () => {
            // A full disk must not end a deployment that works; the reader sees the gap.
            await this.#file.appendFile(bytes).catch(() => undefined);
            this.#changed();
        });
    }
}

/** Opens, follows and removes logs. */
export class Logs {
    readonly #ctx: Ctx;
    readonly #files: Files;
    #changed = Promise.withResolvers<void>();

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
        this.#files = ctx.files(ctx.dataDir);
    }

    /** Opens the log of a deployment to write on. */
    async open(id: number): Promise<DeploymentLog> {
        await this.#files.createFolder('logs', { mode: 0o700, parents: true });
        const file = await this.#files.open(pathOf(id), 'a', 0o600);
        const { size } = await file.stat();
        return new DeploymentLog(file, size, this.#ctx.settings.logBytes, () => {
            const { resolve } = this.#changed;
            this.#changed = Promise.withResolvers<void>();
            resolve();
        });
    }

    /** Lines from an offset on, as they come, until `isOver` says so and all were read. */
    async *follow(
        id: number,
        offset: number,
        isOver: () => Promise<boolean>,
        signal: AbortSignal
    ): AsyncGenerator<PlacedLine> {
        const aborted = new Promise<void>((resolve) =>
            signal.addEventListener('abort', () => resolve(), { once: true })
        );
        let at = offset;
        while (!signal.aborted) {
            // Both are taken before the file is read, so that nothing in between is missed.
            const changed = this.#changed.promise;
            const over = await isOver();
            let read = false;
            for await (const placed of this.#read(id, at)) {
                at = placed.offset;
                read = true;
                yield placed;
            }
            if (over && !read) {
                return;
            }
            if (!read) {
                await Promise.race([changed, aborted]);
            }
        }
    }

    /** Wakes all followers: a deployment without further lines has ended. */
    wake(): void {
        const { resolve } = this.#changed;
        this.#changed = Promise.withResolvers<void>();
        resolve();
    }

    /** Removes the log of a deployment. */
    async remove(id: number): Promise<void> {
        await this.#files.remove(pathOf(id)).catch((error: unknown) => {
            if (!isFailure(error)) {
                throw error;
            }
        });
    }

    /** The whole lines from an offset to the present end. */
    async *#read(id: number, offset: number): AsyncGenerator<PlacedLine> {
        const file = await this.#files.open(pathOf(id)).catch((error: unknown) => {
            if (isFailure(error) && error.code === 40400) {
                return null;
            }
            throw error;
        });
        if (file === null) {
            return;
        }
        try {
            let at = offset;
            let rest: Buffer = Buffer.alloc(0);
            for (;;) {
                const { bytesRead, buffer } = await file.read(
                    Buffer.alloc(readBytes),
                    0,
                    readBytes,
                    at + rest.length
                );
                rest = Buffer.concat([rest, buffer.subarray(0, bytesRead)]);
                for (let end = rest.indexOf(10); end !== -1; end = rest.indexOf(10)) {
                    const text = rest.toString('utf8', 0, end);
                    rest = rest.subarray(end + 1);
                    at += end + 1;
                    yield { offset: at, line: lineOf(text) };
                }
                if (bytesRead === 0) {
                    return;
                }
            }
        } finally {
            await file.close();
        }
    }
}

/** An offset inside a line, which a client made up, gives a broken one. */
function lineOf(text: string): LogLine {
    try {
        return JSON.parse(text) as LogLine;
    } catch {
        return { at: new Date(0).toISOString(), stream: 'panel', text: '' };
    }
}

function pathOf(id: number): string {
    return `logs/${id}.ndjson`;
}
