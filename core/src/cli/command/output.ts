/** Where results and messages go: results to standard output, messages for a person to standard error. */

/** What a command writes to. */
export interface Output {
    /** Whether `--json` was given. */
    readonly json: boolean;
    /** Writes the result: the document with `--json`, else the text, if there is one. */
    result(document: unknown, text: string | null): void;
    /** Writes a message for a person; nothing with `--json`. */
    say(sentence: string): void;
}

/** The streams of the process. */
export interface Streams {
    readonly stdout: { write(text: string): unknown };
    readonly stderr: { write(text: string): unknown };
}

/** Creates the output of a command. */
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

/** Replaces the control characters in text from elsewhere, which could steer a terminal. */
export function toPlainText(text: string): string {
    return text.replace(
        /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
        '\ufffd'
    );
}
