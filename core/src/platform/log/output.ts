/** Standard output as the log's end. A full disk or a reader that is gone loses lines, but never ends the panel. */
import { fstatSync, writeSync } from 'node:fs';

/** What a {@link LogOutput} writes to. */
export interface LogTarget {
    readonly fd: number;
    write(text: string, written: (error?: Error | null) => void): unknown;
    on(event: 'error', listener: () => void): unknown;
}

/** Writes whole lines, counts those that could not be written, and says the count as soon as it can write again. */
export class LogOutput {
    readonly #target: LogTarget;
    readonly #isFile: boolean;
    #lost = 0;
    /** Lines that were lost and not yet reported in the log itself. */
    #unreported = 0;
    /** A line was written in part: the next one begins with a line feed. */
    #isTorn = false;

    constructor(target: LogTarget = process.stdout) {
        this.#target = target;
        this.#isFile = fstatSync(target.fd).isFile();
        // Without a listener an error of the stream would end the process; the callbacks of the writes count it.
        target.on('error', () => undefined);
    }

    /** How many lines were lost since the start. */
    get lost(): number {
        return this.#lost;
    }

    /** Writes a line that ends with a line feed; never throws. */
    write(line: string): void {
        if (!this.#isFile) {
            this.#target.write(line, (error) => (error == null ? this.#report() : this.#count()));
            return;
        }
        if (this.#append(line)) {
            this.#report();
        } else {
            this.#count();
        }
    }

    #count(): void {
        this.#lost += 1;
        this.#unreported += 1;
    }

    #report(): void {
        const count = this.#unreported;
        if (count === 0) {
            return;
        }
        this.#unreported = 0;
        const line = `${JSON.stringify({ level: 'warn', time: new Date().toISOString(), lost: count, msg: 'Lines of the log could not be written and are lost' })}\n`;
        if (!this.#isFile) {
            this.#target.write(line, (error) => {
                this.#unreported += error == null ? 0 : count;
            });
        } else if (!this.#append(line)) {
            this.#unreported += count;
        }
    }

    /** Node's own stream for files ignores that a nearly full disk takes only a part. */
    #append(line: string): boolean {
        const bytes = Buffer.from(this.#isTorn ? `\n${line}` : line);
        let done = 0;
        try {
            while (done < bytes.length) {
                done += writeSync(this.#target.fd, bytes, done);
            }
        } catch {
            // With a line feed in front, one byte alone has only ended the torn line.
            this.#isTorn = this.#isTorn ? done !== 1 : done > 0;
            return false;
        }
        this.#isTorn = false;
        return true;
    }
}
