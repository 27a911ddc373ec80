/** The faults of which each round has one. After each fault the panel is ready again. */
import { watch } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

import { engineHome } from '../../core/src/engine/files/home.ts';
import type { Client } from '../support/panel/client.ts';
import type { PanelProcess } from '../support/panel/process.ts';
import type { Random } from './random.ts';

export interface Victim {
    readonly panel: PanelProcess;
    readonly admin: Client;
    readonly random: Random;
    /** Resolves when a writer is about to send its next change; at once when no writer is active. */
    readonly nextChange: () => Promise<void>;
    readonly violation: (text: string) => void;
}

export interface Nemesis {
    /** How often it is chosen. */
    readonly weight: number;
    /** The fault hits the engine itself, so its visitors may be refused for a moment. */
    readonly hitsEngine?: true;
    /** Every request that was begun must be answered. */
    readonly isPolite?: true;
    /** @returns milliseconds from the last start of the panel until it was ready; null when it was not started */
    strike(victim: Victim): Promise<number | null>;
}

/** Sends a signal to the running engine. Returns false when none runs. */
function toEngine(panel: PanelProcess, name: NodeJS.Signals): number | null {
    const pid = panel.enginePid();
    try {
        if (pid !== null) {
            process.kill(pid, name);
        }
        return pid;
    } catch {
        return null;
    }
}

const killed = async ({ panel }: Victim): Promise<number> => {
    await panel.end('SIGKILL');
    return panel.start();
};

/** Kills the panel some milliseconds after one of its files or folders changed, so between two steps of a change. */
const atFile = (
    weight: number,
    pathOf: (dataDir: string) => string,
    latest: number,
    file: string | null = null
): Nemesis => ({
    weight,
    async strike(victim) {
        const { panel, random } = victim;
        await wait(random.between(20, 800));
        await new Promise<void>((resolve) => {
            const watcher = watch(pathOf(panel.dataDir), (_event, name) => {
                if (file === null || name === file) {
                    done();
                }
            });
            const late = setTimeout(() => done(), 1_500);
            const done = (): void => {
                watcher.close();
                clearTimeout(late);
                resolve();
            };
        });
        const delay = random.between(0, latest);
        if (delay > 0) {
            await wait(delay);
        }
        return killed(victim);
    }
});

export const nemeses = {
    'kill at any moment': {
        weight: 20,
        async strike(victim) {
            await wait(victim.random.between(20, 1_500));
            return killed(victim);
        }
    },
    'kill when the table changes': atFile(12, (dataDir) => engineHome(dataDir, null).table, 4),
    'kill when the engine is given a configuration': atFile(12, (dataDir) => join(dataDir, 'engine'), 20),
    'kill when the database is written': atFile(12, (dataDir) => join(dataDir, 'portico.db-wal'), 4),
    'kill when the audit head is written': atFile(10, (dataDir) => dataDir, 1, 'audit.head'),
    'kill within a change': {
        weight: 14,
        async strike(victim) {
            await wait(victim.random.between(20, 800));
            await victim.nextChange();
            await wait(victim.random.between(0, 25));
            return killed(victim);
        }
    },
    'kill twice, once while it starts': {
        weight: 8,
        async strike({ panel, random }) {
            await wait(random.between(20, 300));
            await panel.end('SIGKILL');
            panel.launch();
            await wait(random.between(0, 1_500));
            await panel.end('SIGKILL');
            return panel.start();
        }
    },
    'kill while changes wait for a reload': {
        weight: 5,
        async strike(victim) {
            const { admin, random, violation } = victim;
            const ask = async (method: 'POST' | 'PUT', path: string, body?: unknown): Promise<void> => {
                const { code, text } = await admin.call(method, path, { body });
                if (code !== 0) {
                    violation(`${method} ${path} is answered ${text}`);
                }
            };
            await ask('PUT', '/api/settings/engine.autoReload', { value: false });
            await wait(random.between(50, 800));
            const ready = await killed(victim);
            const { data } = await admin.get('/api/settings/engine.autoReload');
            if (data?.value !== false) {
                violation('engine.autoReload was turned off before the crash, and is on after it');
            }
            await ask('PUT', '/api/settings/engine.autoReload', { value: true });
            await ask('POST', '/api/proxyengine/reload');
            return ready;
        }
    },
    'stop, go on, kill': {
        weight: 4,
        async strike(victim) {
            const { panel, random } = victim;
            await wait(random.between(20, 200));
            panel.signal('SIGSTOP');
            await wait(random.between(50, 600));
            panel.signal('SIGCONT');
            await wait(random.between(0, 100));
            return killed(victim);
        }
    },
    'end politely': {
        weight: 4,
        isPolite: true,
        async strike({ panel, random, violation }) {
            await wait(random.between(20, 300));
            const code = await panel.end('SIGTERM');
            if (code !== 0) {
                violation(`The panel ended with ${code} after SIGTERM: ${panel.output.slice(-2_000)}`);
            }
            return panel.start();
        }
    },
    'kill the engine': {
        weight: 5,
        hitsEngine: true,
        async strike({ panel, random }) {
            await wait(random.between(20, 300));
            toEngine(panel, 'SIGKILL');
            await wait(random.between(200, 900));
            return null;
        }
    },
    'kill the engine, then the panel': {
        weight: 5,
        hitsEngine: true,
        async strike(victim) {
            await wait(victim.random.between(20, 300));
            toEngine(victim.panel, 'SIGKILL');
            await wait(victim.random.between(0, 700));
            return killed(victim);
        }
    },
    'kill the panel, then the engine': {
        weight: 5,
        hitsEngine: true,
        async strike({ panel, random }) {
            await wait(random.between(20, 300));
            await panel.end('SIGKILL');
            toEngine(panel, 'SIGKILL');
            return panel.start();
        }
    },
    'stop the engine for a moment, kill the panel meanwhile': {
        weight: 5,
        hitsEngine: true,
        async strike({ panel, random }) {
            await wait(random.between(20, 200));
            const engine = toEngine(panel, 'SIGSTOP');
            await wait(random.between(0, 400));
            await panel.end('SIGKILL');
            panel.launch();
            const began = performance.now();
            await wait(random.between(0, 2_500));
            if (engine !== null && panel.enginePid() === engine) {
                toEngine(panel, 'SIGCONT');
            }
            await panel.ready();
            return performance.now() - began;
        }
    },
    'stop the engine for good, kill the panel': {
        weight: 2,
        hitsEngine: true,
        async strike(victim) {
            await wait(victim.random.between(20, 200));
            toEngine(victim.panel, 'SIGSTOP');
            await wait(victim.random.between(0, 300));
            return killed(victim);
        }
    }
} as const satisfies Record<string, Nemesis>;

export type NemesisName = keyof typeof nemeses;
