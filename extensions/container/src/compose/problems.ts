/** What is wrong with a compose file, gathered while it is read. */
import type { FailureError } from '@portico/sdk';

import { fail } from '../errors.ts';

/** One fault of a compose file, with the place where it is. */
export interface ComposeError {
    /** Dotted, such as `services.web.ports.0`. */
    readonly path: string;
    readonly line: number | null;
    readonly message: string;
}

/** @returns COMPOSE_INVALID 42250, whose message says the first fault */
export function composeInvalid(errors: readonly ComposeError[]): FailureError {
    const [{ path, line, message } = { path: '', line: null, message: '' }, ...others] = errors;
    const place = [path, line === null ? '' : `line ${line}`].filter((part) => part !== '').join(', ');
    const more = others.length === 0 ? '' : `, and ${others.length} more`;
    const first = `${place === '' ? '' : `${place}: `}${message}${more}`;
    return fail.COMPOSE_INVALID({ errors }, { message: `The compose file is not valid: ${first}` });
}

/** Faults, and keys that are not carried out. */
export class Problems {
    readonly errors: ComposeError[] = [];
    readonly unsupported: string[] = [];
    readonly warnings: string[] = [];
    readonly #lineOf: (path: readonly (string | number)[]) => number | null;

    constructor(lineOf: (path: readonly (string | number)[]) => number | null = () => null) {
        this.#lineOf = lineOf;
    }

    error(path: readonly (string | number)[], message: string): void {
        this.errors.push({ path: path.join('.'), line: this.#lineOf(path), message });
    }

    lacks(path: readonly (string | number)[], why = ''): void {
        this.unsupported.push(path.join('.'));
        this.errors.push({
            path: path.join('.'),
            line: this.#lineOf(path),
            message: `${path.at(-1)} is not carried out${why === '' ? '' : `: ${why}`}`
        });
    }

    /** @throws COMPOSE_UNSUPPORTED 42251, COMPOSE_INVALID 42250 */
    refuse(): void {
        if (this.unsupported.length > 0) {
            throw fail.COMPOSE_UNSUPPORTED(
                { keys: this.unsupported, errors: this.errors },
                {
                    message: `The compose file has keys that are not carried out: ${this.unsupported.join(', ')}`
                }
            );
        }
        if (this.errors.length > 0) {
            throw composeInvalid(this.errors);
        }
    }
}
