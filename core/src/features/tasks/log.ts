/** The log of a task: its last lines, each with a number, so that a reader can continue after the last line that it has. */

const mostLines = 1_000;
const mostCharacters = 128 * 1024;
const longestLine = 4_096;

const terminal =
    /\u001b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-_])|[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

/** Keeps the last lines, at most 1,000 and at most 128 KiB. */
export class TaskLog {
    #lines: string[] = [];
    #first: number;
    #characters = 0;

    /** @param first - number of the first of `lines` */
    constructor(first = 0, lines: readonly string[] = []) {
        this.#first = first;
        this.#lines = [...lines];
        this.#characters = lines.reduce((sum, line) => sum + line.length, 0);
    }

    /** Adds the lines of a text without terminal sequences. The oldest lines are dropped when there are too many. */
    add(text: string): void {
        for (const line of text
            .slice(0, mostCharacters)
            .replace(/\r\n?/g, '\n')
            .replace(/\n$/, '')
            .split('\n')) {
            const plain = line.toWellFormed().replace(terminal, '').slice(0, longestLine);
            this.#lines.push(plain);
            this.#characters += plain.length;
        }
        let dropped = 0;
        while (this.#lines.length - dropped > mostLines || this.#characters > mostCharacters) {
            this.#characters -= this.#lines[dropped]?.length ?? 0;
            dropped += 1;
        }
        this.#lines.splice(0, dropped);
        this.#first += dropped;
    }

    /** Number after the last line. */
    get end(): number {
        return this.#first + this.#lines.length;
    }

    /** Lines from this number on, as far as they are kept. */
    from(number: number): { readonly number: number; readonly line: string }[] {
        const start = Math.max(number, this.#first);
        return this.#lines.slice(start - this.#first).map((line, index) => ({ number: start + index, line }));
    }

    toJSON(): { readonly first: number; readonly lines: readonly string[] } {
        return { first: this.#first, lines: this.#lines };
    }
}

/** Reads a log that `JSON.stringify` wrote. */
export function taskLogOf(text: string): TaskLog {
    const { first, lines } = JSON.parse(text) as ReturnType<TaskLog['toJSON']>;
    return new TaskLog(first, lines);
}
