/** Ports that the kernel gives to outgoing connections: one of those may have the port that the panel or the engine is to listen on. */
import { readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';

const pauseMs = 200;
const listening = '0A';

/** Tells whether a connection has this local TCP port and nothing listens on it. Only ports that the kernel gives away by itself are looked at. */
export function isTakenByConnection(port: number): boolean {
    const [first = 0, last = -1] = read('/proc/sys/net/ipv4/ip_local_port_range')
        .trim()
        .split(/\s+/)
        .map(Number);
    if (port < first || port > last) {
        return false;
    }
    const states = ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((table) =>
        read(table)
            .split('\n')
            .slice(1)
            .flatMap((line) => {
                const [, local = '', , state = ''] = line.trim().split(/\s+/);
                return Number.parseInt(local.split(':')[1] ?? '', 16) === port ? [state] : [];
            })
    );
    return states.length > 0 && !states.includes(listening);
}

/** Binds a port, again and again while an outgoing connection has it. @throws what `bind` throws, after `limitMs` at the latest */
export async function bindWhenFree<T>(port: number, bind: () => Promise<T>, limitMs: number): Promise<T> {
    const end = performance.now() + limitMs;
    for (;;) {
        try {
            return await bind();
        } catch (error) {
            const { code } = error as NodeJS.ErrnoException;
            if (code !== 'EADDRINUSE' || performance.now() > end || !isTakenByConnection(port)) {
                throw error;
            }
            await wait(pauseMs);
        }
    }
}

/** Empty where the system has no such file. */
function read(path: string): string {
    try {
        return readFileSync(path, 'utf8');
    } catch {
        return '';
    }
}
