/** The log of a run: followed while it runs, stored with it when it ends. */

/** One line of the log of a run; `at` is RFC 3339 in UTC. */
export interface LogLine {
    readonly at: string;
    readonly level: 'info' | 'warning' | 'error';
    readonly text: string;
}

const mostLines = 500;
const mostCharacters = 1_000;

/** Collects the lines of one run: the first 500, and how many came after them. */
export class RunLog {
    readonly #lines: LogLine[] = [];
    readonly #wake = new Set<() => void>();
    #left = 0;
    #ended = false;

    add(level: LogLine['level'], text: string): void {
        if (this.#lines.length < mostLines) {
            this.#lines.push({ at: new Date().toISOString(), level, text: text.slice(0, mostCharacters) });
            this.#wakeAll();
        } else {
            this.#left += 1;
        }
    }

    /** No line comes after that. */
    end(): void {
        if (this.#left > 0) {
            const text = `${this.#left} more lines were left out`;
            this.#lines.push({ at: new Date().toISOString(), level: 'warning', text });
        }
        this.#ended = true;
        this.#wakeAll();
    }

    /** All lines until now. */
    lines(): readonly LogLine[] {
        return this.#lines;
    }

    /** Every line, from the first on, until the run ends or the signal aborts. */
    async *follow(signal: AbortSignal): AsyncGenerator<LogLine> {
        const aborted = (): void => this.#wakeAll();
        signal.addEventListener('abort', aborted, { once: true });
        try {
            for (let at = 0; !signal.aborted; at += 1) {
                while (at >= this.#lines.length && !this.#ended && !signal.aborted) {
                    await new Promise<void>((resolve) => this.#wake.add(resolve));
                }
                const line = this.#lines[at];
                if (line === undefined) {
                    return;
                }
                yield line;
            }
        } finally {
            signal.removeEventListener('abort', aborted);
        }
    }

    #wakeAll(): void {
        this.#wake.forEach((wake) => wake());
        this.#wake.clear();
    }
}
