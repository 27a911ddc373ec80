/** The steps of one deployment as they go on: what its record and its task show. */
import type { DeploymentRow } from '../entities.ts';
import type { Step, StepName, StepState } from './steps.ts';
import type { Store } from './store.ts';

/** Writes the steps of a deployment. */
export class Progress {
    readonly #store: Store;
    readonly #id: number;
    readonly #told: (fraction: number, text: string) => void;
    #steps: readonly Step[];

    constructor(store: Store, { id, steps }: DeploymentRow, told: (fraction: number, text: string) => void) {
        this.#store = store;
        this.#id = id;
        this.#steps = JSON.parse(steps) as Step[];
        this.#told = told;
    }

    /** The step that failed; null when none did. */
    get failed(): StepName | null {
        return this.#steps.find(({ state }) => state === 'failed')?.name ?? null;
    }

    /** Runs work as a step, and writes down how it ended. */
    async step<T>(name: StepName, work: () => Promise<T>): Promise<T> {
        const start = performance.now();
        const seconds = (): number => Math.round(performance.now() - start) / 1_000;
        await this.#set(name, 'running', null);
        this.#told(this.#steps.findIndex((each) => each.name === name) / this.#steps.length, name);
        try {
            const result = await work();
            await this.#set(name, 'done', seconds());
            return result;
        } catch (error) {
            await this.#set(name, 'failed', seconds());
            throw error;
        }
    }

    /** Notes that steps have nothing to do. */
    async skip(...names: readonly StepName[]): Promise<void> {
        for (const name of names) {
            await this.#set(name, 'skipped', null);
        }
    }

    /** Notes that what did not begin will not. */
    async end(): Promise<void> {
        await this.skip(...this.#steps.filter(({ state }) => state === 'waiting').map(({ name }) => name));
    }

    async #set(name: StepName, state: StepState, seconds: number | null): Promise<void> {
        this.#steps = this.#steps.map((step) => (step.name === name ? { name, state, seconds } : step));
        await this.#store.change(this.#id, { steps: JSON.stringify(this.#steps) });
    }
}
