/** The output of one service on the disk: line by line, with the time and the stream, up to a limit. */
import { constants } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import { StringDecoder } from 'node:string_decoder';

type Stream = 'stdout' | 'stderr';

/** Characters; a longer line is cut, and goes on as the next one. */
const longestLine = 8 * 1024;
/** Text that waits for the disk. Beyond it the service's pipes are not read. */
const mostWaiting = 512 * 1024;

/** Writes lines to a file. When half of the limit is reached, the file takes the place of the one before it. */
export class OutputLog {
    #path: string;
    readonly #limit: number;
    readonly #cutters = { stdout: new LineCutter(), stderr: new LineCutter() };
    #waiting: string[] = [];
    #waitingSize = 0;
    #lost = 0;
    #writing: Promise<void> | null = null;

    /** @param limit - bytes of both files together */
    constructor(path: string, limit: number) {
        this.#path = path;
        this.#limit = limit;
    }

    /** More waits than should: the caller reads on when this resolves. Null when it may read on at once. */
    get busy(): Promise<void> | null {
        return this.#waitingSize > mostWaiting ? this.#writing : null;
    }

    /** Takes what a service wrote. */
    add(stream: Stream, bytes: Buffer): void {
        this.#keep(stream, this.#cutters[stream].push(bytes));
    }

    /** Keeps a line of the supervisor's own. */
    note(text: string): void {
        this.#keep('stderr', [`[portico] ${text}`]);
    }

    /** The file lies elsewhere from now on; the caller has moved it. */
    moved(path: string): void {
        this.#path = path;
    }

    /** Keeps what was written without a line break at the end. Resolves when everything is on the disk or lost. */
    async flush(): Promise<void> {
        for (const stream of ['stdout', 'stderr'] as const) {
            this.#keep(stream, this.#cutters[stream].rest());
        }
        await this.#writing;
    }

    #keep(stream: Stream, lines: readonly string[]): void {
        const at = Date.now();
        for (const line of lines) {
            const text = `${at} ${stream} ${line}\n`;
            this.#waiting.push(text);
            this.#waitingSize += text.length;
        }
        if (this.#waiting.length > 0) {
            this.#writing ??= this.#write().finally(() => (this.#writing = null));
        }
    }

    async #write(): Promise<void> {
        while (this.#waiting.length > 0) {
            const lines = this.#waiting;
            this.#waiting = [];
            this.#waitingSize = 0;
            const notice =
                this.#lost === 0
                    ? ''
                    : `\n${Date.now()} stderr [portico] ${this.#lost} lines are missing here: they could not be written\n`;
            try {
                await this.#append(notice + lines.join(''));
                this.#lost = 0;
            } catch {
                // A full disk must not stop the service. What is missing is said when there is space again.
                this.#lost += lines.length;
            }
        }
    }

    async #append(text: string): Promise<void> {
        const { O_WRONLY, O_CREAT, O_APPEND, O_NOFOLLOW } = constants;
        const file = await open(this.#path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0o600);
        try {
            await file.appendFile(text);
            if ((await file.stat()).size > this.#limit / 2) {
                await rename(this.#path, `${this.#path}.1`);
            }
        } finally {
            await file.close();
        }
    }
}

/** Cuts bytes into lines, and long lines into pieces, in bounded memory. */
class LineCutter {
    #decoder = new StringDecoder('utf8');
    #rest = '';

    push(bytes: Buffer): string[] {
        const lines = (this.#rest + this.#decoder.write(bytes)).split('\n');
        this.#rest = lines.pop() ?? '';
        const pieces = lines.flatMap((line) => cut(line));
        while (this.#rest.length > longestLine) {
            pieces.push(this.#rest.slice(0, longestLine));
            this.#rest = this.#rest.slice(longestLine);
        }
        return pieces;
    }

    rest(): string[] {
        const rest = this.#rest + this.#decoder.end();
        this.#rest = '';
        return rest === '' ? [] : [rest];
    }
}

function cut(line: string): string[] {
    const text = line.endsWith('\r') ? line.slice(0, -1) : line;
    return text.length <= longestLine ? [text] : (text.match(new RegExp(`[^]{1,${longestLine}}`, 'g')) ?? []);
}
