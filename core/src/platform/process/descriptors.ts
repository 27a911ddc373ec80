/** Open files that this process got from the one that started it. */
import { closeSync, readdirSync, readFileSync } from 'node:fs';

/** Octal, as `/proc/pid/fdinfo` says it. Source: open(2), proc(5). */
const closeOnExec = 0o2000000;
/** Standard input, output and error. */
const standard = 2;

/**
 * Closes what this process inherited beside its standard streams, so that its children do not inherit it further. To be called first of all.
 *
 * Node sets close-on-exec on every descriptor that it opens. Of those that it inherits it sets it on the lowest only: it stops at the first number
 * above 15 that is not open (libuv, `uv_disable_stdio_inheritance`). One with a higher number would reach every child.
 */
export function closeInherited(): void {
    for (const name of readdirSync('/proc/self/fd')) {
        const descriptor = Number(name);
        if (descriptor > standard && isInheritable(descriptor)) {
            closeSync(descriptor);
        }
    }
}

function isInheritable(descriptor: number): boolean {
    try {
        const flags = /^flags:\s+(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, 'utf8'))?.[1];
        return flags !== undefined && (Number.parseInt(flags, 8) & closeOnExec) === 0;
    } catch {
        return false; // the one that the list itself was read with
    }
}
