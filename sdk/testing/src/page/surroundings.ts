/** What `connect()` of a page finds around it: the frame's parent, and as much of a document as it touches. */
import { MessageChannel, type MessagePort } from 'node:worker_threads';

type Listener = (event: object) => void;
type Global = Record<string, unknown>;
type AnyFunction = (...args: readonly unknown[]) => unknown;

/** Called with the panel's end of the port when a page says hello. */
export type OnHello = (port: MessagePort) => object;

// A page is written for the global object of a browser, which this one stands for while the page is open.
const global = globalThis as unknown as Global;

const names = ['parent', 'addEventListener', 'removeEventListener', 'document', 'ResizeObserver'] as const;

let isTaken = false;

/**
 * Puts a parent on the global object that answers a page's hello, and where there is no document, the little of one that `connect()` needs. A
 * document that a DOM library put there stays.
 *
 * @returns what takes it away again
 */
export function surround(onHello: OnHello): () => void {
    if (isTaken) {
        throw new Error('A test page is open already: close it first, because pages share the global object');
    }
    isTaken = true;
    const before = new Map(names.map((name) => [name, Object.getOwnPropertyDescriptor(global, name)]));
    const listeners = new Set<Listener>();
    const ports: MessagePort[] = [];
    const parent = {
        postMessage: ({ method }: { readonly method?: string }) => {
            if (method !== 'hello') {
                return;
            }
            const { port1, port2 } = new MessageChannel();
            ports.push(port1, port2);
            const params = onHello(port1);
            // In a browser the answer comes later too.
            setImmediate(() =>
                [...listeners].forEach((listener) =>
                    listener({
                        source: parent,
                        data: { jsonrpc: '2.0', method: 'context', params },
                        ports: [port2]
                    })
                )
            );
        }
    };
    const { addEventListener: add, removeEventListener: remove } = global as Record<
        string,
        AnyFunction | undefined
    >;
    put('parent', parent);
    put('addEventListener', (type: string, listener: Listener, ...more: readonly unknown[]) => {
        if (type === 'message') {
            listeners.add(listener);
        } else {
            add?.call(globalThis, type, listener, ...more);
        }
    });
    put('removeEventListener', (type: string, listener: Listener, ...more: readonly unknown[]) => {
        if (!listeners.delete(listener)) {
            remove?.call(globalThis, type, listener, ...more);
        }
    });
    if (global['document'] === undefined) {
        put('document', plainDocument());
    }
    if (global['ResizeObserver'] === undefined) {
        put('ResizeObserver', StillObserver);
    }
    return () => {
        isTaken = false;
        ports.forEach((port) => port.close());
        for (const [name, descriptor] of before) {
            if (descriptor === undefined) {
                Reflect.deleteProperty(global, name);
            } else {
                Object.defineProperty(global, name, descriptor);
            }
        }
    };
}

function put(name: (typeof names)[number], value: unknown): void {
    Object.defineProperty(global, name, { value, configurable: true, writable: true });
}

/** As much of a document as `connect()` touches. */
function plainDocument(): object {
    const properties = new Map<string, string>();
    return {
        documentElement: {
            lang: '',
            style: {
                colorScheme: '',
                setProperty: (name: string, value: string) => void properties.set(name, value),
                getPropertyValue: (name: string) => properties.get(name) ?? ''
            }
        },
        body: { offsetHeight: 0 }
    };
}

/** Nothing has a size without a layout. */
class StillObserver {
    observe(): void {
        // No size changes here.
    }
}
