/** Options of servers that the panel runs: what they are, what an admin wants, and what waits for a restart. */
import { errors } from '@portico/sdk';

import type { KindName } from '../../kinds/kind.ts';
import type { FindTarget } from '../../kinds/target.ts';
import type { Engine, Option, OptionValue, Preset, RunningOption } from '../engine.ts';
import type { ManagedServers } from '../managed.ts';
import type { ManagedRows } from '../rows.ts';
import type { Programs } from './programs.ts';

/** An option as answers show it. */
export interface OptionView {
    readonly name: string;
    /** What runs; of a server that does not run, what it will have. Null: its own default. */
    readonly value: OptionValue | null;
    readonly default: OptionValue | null;
    /** Where the wanted value comes from. */
    readonly source: 'default' | 'preset' | 'set';
    readonly restart: boolean;
    /** A restart brings another value. */
    readonly pending: boolean;
}

/** A change of options; null takes one back to the preset. */
export interface OptionsChange {
    readonly preset?: Preset | undefined;
    readonly values?: Readonly<Record<string, OptionValue | null>> | undefined;
}

/** What reading and changing options needs. */
export interface ConfigurationsOptions {
    readonly managed: ManagedServers;
    readonly rows: ManagedRows;
    readonly programs: Programs;
    readonly engines: Readonly<Record<KindName, Engine>>;
    readonly target: FindTarget;
}

/** Reads and changes options. */
export class Configurations {
    readonly #options: ConfigurationsOptions;

    constructor(options: ConfigurationsOptions) {
        this.#options = options;
    }

    /** All options that can be set. @throws NOT_MANAGED 40950 */
    async list(id: number): Promise<readonly OptionView[]> {
        const { server, managed } = await this.#options.rows.get(id);
        const engine = this.#options.engines[server.kind];
        const wanted = this.#options.programs.wanted({ server, managed });
        const running = (await this.#isRunning(id)) ? await this.#running(id, engine) : null;
        return engine.options.map(({ name, restart }) => {
            const now = running?.get(name);
            const next = wanted[name] ?? now?.default ?? null;
            return {
                name,
                value: now === undefined ? next : now.value,
                default: now?.default ?? null,
                source: name in managed.options ? 'set' : name in wanted ? 'preset' : 'default',
                restart,
                pending: now !== undefined && next !== null && !isSame(now.value, next)
            };
        });
    }

    /** Stores options, and lets those take effect that need no restart. @throws VALIDATION_FAILED 40001, NOT_MANAGED 40950 */
    async change(id: number, { preset, values = {} }: OptionsChange): Promise<readonly OptionView[]> {
        const before = await this.#options.rows.get(id);
        const engine = this.#options.engines[before.server.kind];
        for (const [name, value] of Object.entries(values)) {
            checkOption(engine, name, value);
        }
        const options = Object.fromEntries(
            Object.entries({ ...before.managed.options, ...values }).filter(
                (entry): entry is [string, OptionValue] => entry[1] !== null
            )
        );
        await this.#options.managed.set(id, { options, ...(preset === undefined ? {} : { preset }) });
        if (await this.#isRunning(id)) {
            await this.#apply(id, engine, [
                this.#options.programs.wanted(before),
                this.#options.programs.wanted(await this.#options.rows.get(id))
            ]);
        }
        return this.list(id);
    }

    async #apply(
        id: number,
        engine: Engine,
        [before, after]: readonly [
            Readonly<Record<string, OptionValue>>,
            Readonly<Record<string, OptionValue>>
        ]
    ): Promise<void> {
        if (engine.apply === null) {
            await this.#options.programs.change(id, 'reload');
            return;
        }
        const apply = engine.apply;
        const changed = engine.options
            .filter(({ name, restart }) => !restart && before[name] !== after[name])
            .map(({ name }) => [name, after[name] ?? null] as const);
        const { admin } = await this.#options.target(id);
        await admin.use(null, (session) => apply(session, Object.fromEntries(changed)));
    }

    async #isRunning(id: number): Promise<boolean> {
        return (await this.#options.programs.info(id))?.state === 'running';
    }

    async #running(id: number, engine: Engine): Promise<ReadonlyMap<string, RunningOption>> {
        const { admin } = await this.#options.target(id);
        return admin.use(null, (session) => engine.running(session));
    }
}

/** Servers round sizes to their pages and blocks. */
function isSame(one: OptionValue | null, other: OptionValue): boolean {
    return typeof one === 'number' && typeof other === 'number'
        ? Math.abs(one - other) <= Math.max(one, other) * 0.01
        : one === other;
}

/** @throws VALIDATION_FAILED 40001 */
function checkOption({ options }: Engine, name: string, value: OptionValue | null): void {
    const option = options.find((each) => each.name === name);
    const problem =
        option === undefined
            ? `It is not one of ${options.map((each) => each.name).join(', ')}`
            : value === null
              ? null
              : problemOf(option, value);
    if (problem !== null) {
        throw errors.invalid([{ path: `values.${name}`, message: problem }]);
    }
}

function problemOf(
    { type, choices = [], min = 0, max = Number.MAX_SAFE_INTEGER }: Option,
    value: OptionValue
): string | null {
    if (type === 'boolean') {
        return typeof value === 'boolean' ? null : 'It is true or false';
    }
    if (type === 'choice') {
        return choices.includes(String(value)) ? null : `It is one of ${choices.join(', ')}`;
    }
    return typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max
        ? null
        : `It is a whole number from ${min} to ${max}`;
}
