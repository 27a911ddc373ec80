/** Where results and messages go: results to standard output, everything meant for a person to standard error. */

export interface Output {
    readonly json: boolean;
    /** The result: the document with `--json`, else the text, if there is one. */
    result(document: unknown, text: string | null): void;
    /** A sentence for a person; silent with `--json`. */
    say(sentence: string): void;
}

export interface Streams {
    readonly stdout: { write(text: string): unknown };
    readonly stderr: { write(text: string): unknown };
}

export function createOutput({ stdout, stderr }: Streams, json: boolean): Output {
    return {
        json,
        result(document, text) {
            if (json) {
                stdout.write(`${JSON.stringify(document, null, 2)}\n`);
            } else if (text !== null) {
                stdout.write(`${text}\n`);
            }
        },
        say(sentence) {
            if (!json) {
                stderr.write(`${sentence}\n`);
            }
        }
    };
}

/** Text from elsewhere without what would steer a terminal. */
export function plain(text: string): string {
    return text.replace(
        /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
        '\ufffd'
    );
}
