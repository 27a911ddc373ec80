/** The consumer's side of contracts: proxies that call the generation of the partner that runs at the time of the call. */
import type { RemoteOptions } from '../../definition.ts';
import { plainCopy } from '../plain.ts';
import type { ContractAnswer } from '../protocol.ts';

type Ask = (input: {
    readonly plugin: string;
    readonly method: string;
    readonly input: unknown;
    readonly options: RemoteOptions;
}) => Promise<ContractAnswer>;

/** A stable proxy of a partner's contract. */
export function partnerProxy(plugin: string, ask: Ask): object {
    const methods = new Map<string, (input: unknown, options?: RemoteOptions) => unknown>();
    return new Proxy(Object.freeze({}), {
        get(_target, method) {
            // A proxy that is awaited must not look like a promise.
            if (typeof method !== 'string' || method === 'then') {
                return undefined;
            }
            let call = methods.get(method);
            if (call === undefined) {
                call = (input, options = {}) =>
                    answerOf(async () =>
                        ask({
                            plugin,
                            method,
                            input: plainCopy(input, `the input of ${plugin}.${method}`),
                            options
                        })
                    );
                methods.set(method, call);
            }
            return call;
        }
    });
}

/** One value to await, or a series to iterate, as the provider's method decides. The call begins at once. */
function answerOf(begin: () => Promise<ContractAnswer>): Promise<unknown> & AsyncIterable<unknown> {
    const answer = begin();
    const value = answer.then(({ value: one, series }) => series ?? one);
    // A caller that iterates does not await the value, and gets the failure from the iteration.
    value.catch(() => undefined);
    return Object.assign(value, {
        async *[Symbol.asyncIterator]() {
            const { series } = await answer;
            if (series === undefined) {
                throw new TypeError('This method of the contract answers one value: await it');
            }
            yield* series;
        }
    });
}
