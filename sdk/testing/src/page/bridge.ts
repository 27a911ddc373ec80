/** The panel's end of a page's port in a test: JSON-RPC 2.0, as the panel's pages speak it. */
import type { MessagePort } from 'node:worker_threads';

type Params = Readonly<Record<string, unknown>>;

/** Why the bridge itself refused, with its number. */
const codes = {
    NO_METHOD: -32_601,
    WRONG_PARAMS: -32_602,
    INTERNAL: -32_603,
    NOT_ALLOWED: -32_000,
    CANCELLED: -32_001
} as const;

/** A refusal of the bridge. */
export class BridgeRefusal extends Error {
    readonly reason: keyof typeof codes;

    constructor(reason: keyof typeof codes, message: string) {
        super(message);
        this.reason = reason;
    }
}

/** One request of a page. */
export interface PageWork {
    readonly method: string;
    readonly params: Params;
    /** Aborted when the page cancels it. */
    readonly signal: AbortSignal;
    /** Tells the page something while the work lasts. */
    tell(event: object): void;
    /** Called with what the page sends into it, such as a message of a socket. */
    onData: ((data: string | Uint8Array) => void) | null;
}

/** Answers every request that comes in at a port. */
export function serve(port: MessagePort, answer: (work: PageWork) => Promise<unknown>): void {
    const running = new Map<number, { readonly work: PageWork; readonly controller: AbortController }>();
    const send = (message: object): void => port.postMessage({ jsonrpc: '2.0', ...message });
    const run = async (id: number, method: string, params: Params): Promise<void> => {
        const controller = new AbortController();
        const work: PageWork = {
            method,
            params,
            signal: controller.signal,
            tell: (event) => send({ method: 'event', params: { id, ...event } }),
            onData: null
        };
        running.set(id, { work, controller });
        try {
            send({ id, result: await answer(work) });
        } catch (error) {
            send({ id, error: refusalOf(error) });
        } finally {
            running.delete(id);
        }
    };
    port.on(
        'message',
        ({ id, method = '', params = {} }: { id?: number; method?: string; params?: Params }) => {
            if (id !== undefined) {
                void run(id, method, params);
                return;
            }
            const found = running.get(Number(params['id']));
            if (method === 'cancel') {
                found?.controller.abort();
            } else if (method === 'send') {
                found?.work.onData?.(params['data'] as string | Uint8Array);
            }
        }
    );
    // A page that is open is no reason for a test to last.
    port.unref();
}

function refusalOf(error: unknown): object {
    const reason = error instanceof BridgeRefusal ? error.reason : 'INTERNAL';
    return { code: codes[reason], message: (error as Error).message, data: { reason } };
}
