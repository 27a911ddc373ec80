/**
 * Records a plugin's use of dangerous capabilities, and its refused attempts, in the audit log. The first use is written at once; others
 * are counted and written once a minute, and the very same command once a day, so that a busy plugin does not flood the log.
 */
import type { Clock } from '../../../platform/clock.ts';
import type { Logger } from '../../../platform/log/log.ts';
import type { AuditEntry, Recorder } from '../../../server/http/ports.ts';
import type { Deprecation, Refusal } from '../generation/generation.ts';

/** What the usage log of one plugin needs. */
export interface UsageLogOptions {
    readonly plugin: string;
    readonly recorder: Pick<Recorder, 'recordAlone'>;
    readonly log: Logger;
    readonly clock: Clock;
}

const windowMs = 60_000;
/** A health check repeats its command all the time. */
const sameCommandMs = 24 * 60 * 60_000;
/** How many commands are known at the same time; any other is one of its program. */
const mostCommands = 500;
const longestArguments = 2_000;
const longestCapability = 300;
/** How many different refusals get an entry of their own in a minute; further ones are counted together. */
const mostRefusals = 20;
/** How many refused capabilities `refusals` returns. */
const mostRemembered = 100;
const refused = 50305;

interface Counted {
    count: number;
    readonly write: (count: number) => Promise<void>;
    readonly timer: NodeJS.Timeout;
}

/** The usage log of one generation. */
export class UsageLog {
    readonly #options: UsageLogOptions;
    readonly #counted = new Map<string, Counted>();
    /** By capability, the latest last. */
    readonly #refusals = new Map<string, Refusal>();
    /** By name. */
    readonly #deprecations = new Map<string, Deprecation>();
    #commands = 0;
    #isClosed = false;

    constructor(options: UsageLogOptions) {
        this.#options = options;
    }

    /** Records that a program was started. */
    exec(file: string, args: readonly string[], user: string | null): void {
        const argv = JSON.stringify(args).slice(0, longestArguments);
        const write = (count: number): Promise<void> =>
            this.#record({
                action: 'exec',
                resource: 'program',
                resourceId: file,
                after: { args: argv, user, count },
                outcome: 'success',
                code: 0
            });
        const command = `command ${file} ${user ?? ''} ${argv}`;
        const known = this.#counted.get(command);
        if (known !== undefined) {
            known.count += 1;
            return;
        }
        if (this.#commands < mostCommands && !this.#isClosed) {
            this.#commands += 1;
            this.#count(command, sameCommandMs, write);
        }
        this.#use(`exec ${file} ${user ?? ''}`, write);
    }

    /** Records that the plugin used a capability without a grant. */
    refused(capability: string): void {
        const name = capability.slice(0, longestCapability);
        const before = this.#refusals.get(name);
        this.#refusals.delete(name);
        this.#refusals.set(name, {
            capability: name,
            count: (before?.count ?? 0) + 1,
            at: this.#options.clock.now()
        });
        const [oldest] = this.#refusals.keys();
        if (this.#refusals.size > mostRemembered && oldest !== undefined) {
            this.#refusals.delete(oldest);
        }
        const key = `refused ${name}`;
        const isMany =
            !this.#counted.has(key) &&
            [...this.#counted.keys()].filter((each) => each.startsWith('refused ')).length >= mostRefusals;
        const resourceId = isMany ? 'others' : name;
        this.#use(isMany ? 'refused' : key, async (count) => {
            this.#options.log.warn('A plugin used a capability that it does not have', {
                capability: resourceId,
                count
            });
            await this.#record({
                action: 'use',
                resource: 'capability',
                resourceId,
                after: { count },
                outcome: 'failure',
                code: refused
            });
        });
    }

    /** The refused capabilities, the latest last. */
    refusals(): readonly Refusal[] {
        return [...this.#refusals.values()];
    }

    /** Counts a use of what will go, and warns once. @param removedIn - the version without it; null when that is not known */
    deprecated(member: string, removedIn: string | null): void {
        const before = this.#deprecations.get(member);
        if (before === undefined) {
            this.#options.log.warn('A plugin uses what will go', { member, removedIn });
        }
        this.#deprecations.set(member, { member, removedIn, count: (before?.count ?? 0) + 1 });
    }

    /** What was used that will go. */
    deprecations(): readonly Deprecation[] {
        return [...this.#deprecations.values()];
    }

    /** Writes the counts that are not written yet. */
    async close(): Promise<void> {
        this.#isClosed = true;
        const left = [...this.#counted.values()];
        this.#counted.clear();
        for (const { count, write, timer } of left) {
            clearInterval(timer);
            if (count > 0) {
                await write(count);
            }
        }
    }

    #record({
        resource,
        ...entry
    }: Pick<AuditEntry, 'action' | 'resource' | 'resourceId' | 'after' | 'outcome' | 'code'>): Promise<void> {
        const { plugin, recorder } = this.#options;
        return recorder.recordAlone({
            ...entry,
            actor: { id: null, username: null, tokenId: null, plugin },
            resource: `${plugin}.${resource}`,
            status: null,
            ip: null,
            userAgent: null,
            requestId: null
        });
    }

    #use(key: string, write: (count: number) => Promise<void>): void {
        const counted = this.#counted.get(key);
        if (counted !== undefined) {
            counted.count += 1;
            return;
        }
        if (this.#isClosed) {
            return; // After the end no new count begins, since it would never be written.
        }
        this.#count(key, windowMs, write);
        write(1).catch(this.#failed);
    }

    /** Counts uses from now on, and writes their number at the end of each window. Commands are counted until a window without a use. */
    #count(key: string, ms: number, write: Counted['write']): void {
        const isCommand = ms === sameCommandMs;
        const timer = setInterval(() => {
            const counted = this.#counted.get(key);
            const count = counted?.count ?? 0;
            if (counted !== undefined && count > 0) {
                counted.count = 0;
                write(count).catch(this.#failed);
            }
            if (!isCommand || count === 0) {
                clearInterval(timer);
                this.#counted.delete(key);
                this.#commands -= isCommand ? 1 : 0;
            }
        }, ms);
        timer.unref();
        this.#counted.set(key, { count: 0, write, timer });
    }

    readonly #failed = (error: unknown): void =>
        this.#options.log.error('A use could not be put on record', { error });
}
