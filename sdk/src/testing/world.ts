/** Everything around a plugin under test that outlives its generations: what the test sees, sets and breaks. */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { join } from 'node:path';

import type { Capabilities } from '../boundary/grants.ts';
import type { Sealer } from '../boundary/settings.ts';
import type { Notification } from '../context.ts';
import { People } from './actors.ts';
import { ApiFake } from './api.ts';
import { FaultSwitch } from './faults.ts';
import type { AuditRecord } from './front.ts';
import { HooksFake } from './hooks.ts';
import type { TestPackage } from './manifest.ts';
import { NetworkFake } from './network.ts';
import { type FakeContract, PartnersFake } from './partners.ts';
import { ProgramsFake } from './programs.ts';
import { SchedulesFake } from './schedules.ts';
import { ServingFake } from './serving.ts';
import { TasksFake } from './tasks.ts';
import { TestTickets } from './tickets.ts';

/** A line of the plugin's log. */
export interface LogLine {
    readonly level: 'debug' | 'info' | 'warn' | 'error';
    readonly message: string;
    readonly fields: Readonly<Record<string, unknown>>;
}

export class World {
    readonly package: TestPackage;
    /** The plugin's private folder. */
    readonly dataDir: string;
    /** What the plugin thinks is the machine's root. */
    readonly machine: string;
    readonly people: People;
    readonly api = new ApiFake();
    readonly faults = new FaultSwitch();
    readonly hooks = new HooksFake();
    readonly network = new NetworkFake();
    readonly partners: PartnersFake;
    readonly programs = new ProgramsFake();
    readonly serving = new ServingFake();
    readonly clock: SchedulesFake;
    readonly tasks: TasksFake;
    readonly tickets: TestTickets;
    readonly sealer: Sealer = createSealer();
    readonly log: LogLine[] = [];
    readonly audit: AuditRecord[] = [];
    readonly notifications: Notification[] = [];
    granted: Capabilities;
    /** As they are kept: secrets sealed. */
    settings: Readonly<Record<string, unknown>> = {};
    readonly #quiet: boolean;

    constructor(
        root: string,
        pkg: TestPackage,
        options: {
            readonly partners: Readonly<Record<string, FakeContract>>;
            readonly now: number;
            readonly quiet: boolean;
        }
    ) {
        this.package = pkg;
        this.#quiet = options.quiet;
        this.dataDir = join(root, 'data');
        this.machine = join(root, 'machine');
        this.granted = pkg.manifest.capabilities ?? {};
        this.people = new People(pkg.manifest, () => this.api.permissions());
        this.partners = new PartnersFake(options.partners);
        this.clock = new SchedulesFake(options.now, (name, error) =>
            this.write({
                level: 'error',
                message: 'Scheduled work failed',
                fields: { schedule: name, error }
            })
        );
        this.tasks = new TasksFake(() => this.clock.now());
        this.tickets = new TestTickets(() => this.clock.now());
    }

    /** A line of the log. A bug is also shown to whoever runs the test: its answer says no more than 50000. */
    write(line: LogLine): void {
        this.log.push(line);
        const { stack } = (line.fields['error'] ?? {}) as { stack?: unknown };
        if (line.level === 'error' && typeof stack === 'string' && !this.#quiet) {
            process.stderr.write(`${line.message}: ${stack}\n`);
        }
    }
}

function createSealer(): Sealer {
    const master = randomBytes(32);
    const keyOf = (label: string): Buffer => Buffer.from(hkdfSync('sha256', master, '', label, 32));
    return {
        seal(label, plain) {
            const iv = randomBytes(12);
            const cipher = createCipheriv('aes-256-gcm', keyOf(label), iv);
            return Buffer.concat([
                iv,
                cipher.update(plain, 'utf8'),
                cipher.final(),
                cipher.getAuthTag()
            ]).toString('base64url');
        },
        open(label, sealed) {
            const bytes = Buffer.from(sealed, 'base64url');
            if (bytes.length < 28) {
                throw new Error(`A sealed value of ${label} is damaged`);
            }
            const decipher = createDecipheriv('aes-256-gcm', keyOf(label), bytes.subarray(0, 12));
            decipher.setAuthTag(bytes.subarray(-16));
            return Buffer.concat([decipher.update(bytes.subarray(12, -16)), decipher.final()]).toString(
                'utf8'
            );
        }
    };
}
