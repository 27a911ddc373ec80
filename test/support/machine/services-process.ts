/** The services of a panel as a process of its own: calls come as lines of JSON on standard input, answers go to standard output. */
import { createInterface } from 'node:readline';

import type { OutputOptions, ServiceLine } from '../../../core/src/services/port.ts';
import { createServices } from '../../../core/src/services/services.ts';

const [, , kind = 'auto'] = process.argv;
const services = createServices(
    { dataDir: '/var/lib/portico', services: kind as 'auto' | 'supervisor' },
    { warn: (message, fields) => console.error(message, fields) }
);
const followed: ServiceLine[] = [];
let isFollowing = false;

/** What the test can call beside the methods of the services. */
const more: Readonly<Record<string, (...args: never[]) => unknown>> = {
    kind: () => services.constructor.name,
    lines: (owner: string, name: string) =>
        Array.fromAsync(services.output(owner, name, { ...everything, follow: false })),
    async follow(owner: string, name: string) {
        isFollowing = true;
        for await (const line of services.output(owner, name, { ...everything, follow: true })) {
            followed.push(line);
        }
        isFollowing = false;
    },
    followed: () => ({ isFollowing, lines: followed })
};
const everything: Omit<OutputOptions, 'follow'> = { tail: 10_000, signal: new AbortController().signal };

createInterface({ input: process.stdin }).on('line', (line) => void answer(line));

async function answer(line: string): Promise<void> {
    const { id, method, args } = JSON.parse(line) as { id: number; method: string; args: never[] };
    try {
        const own = more[method];
        // A method of the port that the test names.
        const port = services as unknown as Readonly<Record<string, (...each: never[]) => unknown>>;
        const result = await (own === undefined ? port[method]?.(...args) : own(...args));
        process.stdout.write(`${JSON.stringify({ id, result })}\n`);
    } catch (error) {
        process.stdout.write(`${JSON.stringify({ id, error: String(error) })}\n`);
    }
}
