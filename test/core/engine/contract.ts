import { expect } from '@hapi/code';
import type { script } from '@hapi/lab';

import {
    type EngineConfig,
    type EngineDriver,
    type EngineProcess,
    EngineRejected,
    EngineUnavailable
} from '../../../core/src/engine/port.ts';
import { until } from '../../support/until.ts';

/** One engine to hold against the port's contract. */
export interface ContractSubject {
    readonly driver: EngineDriver;
    /** A configuration that is told apart by `mark`. */
    good(mark: string): EngineConfig;
    /** A configuration that the engine refuses, and a part of its reason. */
    readonly bad: { readonly config: EngineConfig; readonly reason: string };
    /** Which configuration's mark is served now; null: nothing is. */
    serves(): Promise<string | null>;
    /** Ends the engine from outside, so that it comes back by itself. */
    kill(): void;
    /** Makes the engine say something. */
    chat(): Promise<void>;
    close(): Promise<void>;
}

/** What every engine driver keeps to. */
export const engineContract = (
    lab: script.Script,
    name: string,
    create: () => Promise<ContractSubject>
): void => {
    const { describe, it, beforeEach, afterEach } = lab;

    describe(`EngineDriver: ${name}`, { timeout: 60_000 }, () => {
        let subject: ContractSubject;

        beforeEach(async () => {
            subject = await create();
        });

        afterEach(() => subject.close());

        it('is stopped until it is started, then runs the base, and a second start changes nothing', async () => {
            const { driver } = subject;
            expect(driver.process()).to.include({
                state: 'stopped',
                pid: null,
                startedAt: null,
                message: null
            });
            expect(await driver.config()).to.be.null();

            expect(await driver.start(subject.good('base'))).to.be.true();
            const { state, pid, startedAt, message, version } = driver.process();
            expect({ state, message }).to.equal({ state: 'running', message: null });
            expect(pid).to.be.a.number();
            expect(version).to.include({ major: 2 });
            expect(Math.abs(Date.now() - (startedAt?.getTime() ?? 0))).to.be.below(60_000);
            expect(await driver.config()).to.equal(subject.good('base'));
            expect(await subject.serves()).to.equal('base');

            expect(await driver.start(subject.good('other'))).to.be.false();
            expect(driver.process().pid).to.equal(pid);
            expect(await subject.serves()).to.equal('base');
        });

        it('serves a configuration as soon as its load resolves', async () => {
            await subject.driver.start(subject.good('base'));
            for (const mark of ['one', 'two', 'two', 'three']) {
                await subject.driver.load(subject.good(mark));
                expect(await subject.serves()).to.equal(mark);
                expect(await subject.driver.config()).to.equal(subject.good(mark));
            }
        });

        it('ends with the last of several loads that were given at once', async () => {
            await subject.driver.start(subject.good('base'));
            await Promise.all(['a', 'b', 'c', 'd'].map((mark) => subject.driver.load(subject.good(mark))));
            expect(await subject.serves()).to.equal('d');
        });

        it('refuses a bad configuration with its reason and serves the one before', async () => {
            await subject.driver.start(subject.good('base'));
            const { pid } = subject.driver.process();
            const error = await expect(subject.driver.load(subject.bad.config)).to.reject(EngineRejected);
            expect(error.message).to.include(subject.bad.reason);
            expect(await subject.serves()).to.equal('base');
            expect(await subject.driver.config()).to.equal(subject.good('base'));
            expect(subject.driver.process()).to.include({ state: 'running', pid });
        });

        it('validates without touching what runs', async () => {
            await subject.driver.start(subject.good('base'));
            await subject.driver.validate(subject.good('other'));
            const error = await expect(subject.driver.validate(subject.bad.config)).to.reject(EngineRejected);
            expect(error.message).to.include(subject.bad.reason);
            expect(error.message).to.not.match(/\/(tmp|run|var)\//);
            expect(await subject.serves()).to.equal('base');
        });

        it('validates while the engine is stopped', async () => {
            await subject.driver.validate(subject.good('other'));
            await expect(subject.driver.validate(subject.bad.config)).to.reject(EngineRejected);
            expect(subject.driver.process().state).to.equal('stopped');
        });

        it('stays stopped, and then starts with what it was last given', async () => {
            const { driver } = subject;
            await driver.start(subject.good('base'));
            await driver.load(subject.good('last'));
            expect(await driver.stop()).to.be.true();
            expect(driver.process()).to.include({ state: 'stopped', pid: null, startedAt: null });
            expect(await subject.serves()).to.be.null();
            expect(await driver.stop()).to.be.false();
            await expect(driver.load(subject.good('late'))).to.reject(EngineUnavailable);
            expect(await driver.config()).to.be.null();
            expect(await driver.upstreams()).to.equal([]);

            expect(await driver.start(subject.good('base'))).to.be.true();
            expect(await subject.serves()).to.equal('last');
        });

        it('comes back by itself with the same configuration, and tells of both', async () => {
            const { driver } = subject;
            const seen: EngineProcess[] = [];
            await driver.start(subject.good('base'));
            await driver.load(subject.good('last'));
            driver.onChange((process) => seen.push(process));
            subject.kill();
            await until(() => seen.at(-1)?.state === 'running', 'engine runs again');
            expect(seen.map(({ state }) => state)).to.equal(['failing', 'running']);
            expect(seen[0]?.message).to.be.a.string();
            expect(await subject.serves()).to.equal('last');
            expect(await driver.config()).to.equal(subject.good('last'));
        });

        it('takes what comes after a stop that was given at the same time as a start', async () => {
            const { driver } = subject;
            await Promise.all([
                driver.start(subject.good('base')),
                driver.stop(),
                driver.start(subject.good('base'))
            ]);
            expect(driver.process().state).to.equal('running');
            expect(await subject.serves()).to.equal('base');
        });

        it('gives the last lines of its log, and follows until the signal ends', async () => {
            await subject.driver.start(subject.good('base'));
            await subject.chat();
            const take = async (lines: number): Promise<string[]> => {
                const taken: string[] = [];
                for await (const line of subject.driver.logs({
                    lines,
                    follow: false,
                    signal: new AbortController().signal
                })) {
                    taken.push(line);
                }

                return taken;
            };

            expect(await take(1)).to.have.length(1);
            expect(await take(0)).to.equal([]);

            const ending = new AbortController();
            const followed: string[] = [];
            const reading = (async () => {
                for await (const line of subject.driver.logs({
                    lines: 1,
                    follow: true,
                    signal: ending.signal
                })) {
                    followed.push(line);
                }
            })();
            await until(() => followed.length > 0, 'first line');
            await subject.chat();
            await until(() => followed.length > 1, 'followed line');
            ending.abort();
            await reading;
        });
    });
};
