/**
 * The page's end of the bridge to the panel. It runs in a frame without an origin, which reaches nothing else. The panel hands this module
 * out as it is, so it imports nothing.
 */
import type { PageAnswer, PageContext, PageEvent, PageRequest } from './protocol.ts';

export type { PageAnswer, PageContext, PageEvent, PageRequest } from './protocol.ts';

/** What one operation takes and answers, in the types that `portico plugin dev` writes. */
export interface PageOperation {
    readonly path?: unknown;
    readonly query?: unknown;
    readonly body?: unknown;
    readonly data?: unknown;
}

/** Operations without types: the ones of a page that names none. */
export type AnyOperations = Readonly<
    Record<
        string,
        {
            readonly path?: Readonly<Record<string, string | number>>;
            readonly query?: Readonly<Record<string, unknown>>;
            readonly body?: unknown;
            readonly data: unknown;
        }
    >
>;

/** The request of one operation. */
export type RequestOf<Operation> = Omit<Operation, 'data'> & Pick<PageRequest, 'ifMatch'>;

/** The request, which may be left out where nothing of it is required. */
export type RequestArguments<Operation> =
    Record<never, never> extends RequestOf<Operation>
        ? [request?: RequestOf<Operation>]
        : [request: RequestOf<Operation>];

/** What `call` resolves with. */
export type AnswerOf<Operation> = Omit<PageAnswer, 'data'> & {
    readonly data: Operation extends { readonly data: infer Data } ? Data : unknown;
};

/** How a file is sent. */
export interface UploadOptions extends Omit<PageRequest, 'operationId' | 'body'> {
    /** Sends it by tus 1.0 to an operation that speaks it; a broken upload goes on where it was. The metadata of tus by their names. */
    readonly tus?: Readonly<Record<string, string>>;
    /** Sends it only where there is nothing yet. */
    readonly onlyNew?: boolean;
    readonly signal?: AbortSignal;
    /** Called as bytes are sent. */
    readonly onProgress?: (sent: number, total: number) => void;
}

/** A WebSocket of the plugin, which the panel holds for the page. */
export interface PageSocket {
    send(data: string | Uint8Array): void;
    close(): void;
    /** Resolves with the status and the reason when it is closed. */
    readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
}

/** The panel, as a page reaches it. */
export interface Panel<Operations = AnyOperations> {
    /** As the panel told it last. */
    readonly context: PageContext;
    /** Calls the listener when the context changes. Returns what stops that. */
    onContext(listener: (context: PageContext) => void): () => void;
    /**
     * Calls an operation of the plugin or of `uses`, as the user. The panel asks the user for the password again where the route wants that, and before anything
     * that cannot be undone. The `data` of a download is a `Blob`, of 64 MiB at most.
     * @throws PanelError for every refusal; with `CANCELLED` when the user says no, `NOT_ALLOWED` for another operation
     */
    call<Id extends keyof Operations & string>(
        operationId: Id,
        ...request: RequestArguments<Operations[Id]>
    ): Promise<AnswerOf<Operations[Id]>>;
    /**
     * Follows a stream until it ends or the loop is left. The panel connects again after a cut, and goes on after the last event.
     * @throws PanelError when the stream is refused
     */
    follow<Id extends keyof Operations & string>(
        operationId: Id,
        ...request: RequestArguments<Operations[Id]>
    ): AsyncIterable<PageEvent>;
    /** Has the browser save what a download answers. @throws PanelError */
    download<Id extends keyof Operations & string>(
        operationId: Id,
        ...request: RequestArguments<Operations[Id]>
    ): Promise<void>;
    /** Sends a file. @throws PanelError */
    upload(operationId: keyof Operations & string, file: Blob, options?: UploadOptions): Promise<PageAnswer>;
    /** Opens a WebSocket of the plugin by the address that its ticket has. @throws PanelError */
    open(address: string, onMessage: (data: string | ArrayBuffer) => void): PageSocket;
    /** Changes the page's part of the panel's address, so that it can be reloaded and sent to others: `context.location` then. A path such as `/hosts/1` leads to that screen of the panel. */
    navigate(location: string): Promise<void>;
    /** Asks the user. @returns false when the user says no */
    confirm(question: string, action?: string): Promise<boolean>;
    /** Tells the user that something is done, or has failed. */
    toast(text: string, tone?: 'good' | 'bad'): Promise<void>;
    /** Sets the title of the screen. */
    title(text: string): Promise<void>;
    /** Sets the height of the frame in pixels. `connect` does it whenever the document's height changes. */
    resize(height: number): Promise<void>;
}

/** A refusal of the panel. */
export class PanelError extends Error {
    /** HTTP status; 0 when the refusal is that of the bridge. */
    readonly status: number;
    /** HTTP status × 100 plus a detail, or the number of an error of JSON-RPC. */
    readonly code: number;
    /** The word for it, such as `NOT_FOUND`, `CANCELLED` or `NOT_ALLOWED`. */
    readonly reason: string;
    readonly data: Readonly<Record<string, unknown>>;

    constructor(status: number, code: number, message: string, data: unknown) {
        super(message);
        this.name = 'PanelError';
        this.status = status;
        this.code = code;
        this.data = typeof data === 'object' && data !== null ? { ...data } : {};
        this.reason = String(this.data['reason'] ?? '');
    }
}

/** What is used of the browser. The SDK is compiled without its types, because plugins run on the server. */
interface Browser {
    readonly parent: { postMessage(message: unknown, targetOrigin: string): void };
    readonly document: {
        readonly documentElement: {
            readonly style: {
                setProperty(name: string, value: string): void;
                colorScheme: string;
            };
            lang: string;
        };
        readonly body: { readonly offsetHeight: number };
    };
    readonly ResizeObserver: new (tell: () => void) => { observe(element: unknown): void };
    addEventListener(type: 'message', listener: (event: BrowserMessage) => void): void;
    removeEventListener(type: 'message', listener: (event: BrowserMessage) => void): void;
}

interface BrowserMessage {
    readonly source: unknown;
    readonly data: unknown;
    readonly ports: readonly Port[];
}

interface Port {
    postMessage(message: unknown): void;
    onmessage: ((event: { readonly data: unknown }) => void) | null;
}

interface Message {
    readonly id?: number;
    readonly method?: string;
    readonly params?: unknown;
    readonly result?: unknown;
    readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

interface Waiting {
    readonly resolve: (result: unknown) => void;
    readonly reject: (error: PanelError) => void;
    readonly tell: (params: Readonly<Record<string, unknown>>) => void;
}

// The types of Node know no document: the names above are all that is taken from the global object of a browser.
const browser = globalThis as unknown as Browser;

/**
 * Connects the page with the panel around it, and lets the document look like the panel. Once a page.
 * @typeParam Operations - those of the plugin, as `portico plugin dev` writes them
 */
export async function connect<Operations = AnyOperations>(): Promise<Panel<Operations>> {
    const { port, context } = await new Promise<{ port: Port; context: PageContext }>((resolve) => {
        const listen = ({ source, data, ports }: BrowserMessage): void => {
            const { method, params } = (data ?? {}) as Message;
            const [port] = ports;
            if (source === browser.parent && method === 'context' && port !== undefined) {
                browser.removeEventListener('message', listen);
                resolve({ port, context: params as PageContext });
            }
        };
        browser.addEventListener('message', listen);
        browser.parent.postMessage({ jsonrpc: '2.0', method: 'hello', params: { protocol: 1 } }, '*');
    });
    const bridge = new Bridge<Operations>(port, context);
    new browser.ResizeObserver(() => void bridge.resize(browser.document.body.offsetHeight)).observe(
        browser.document.body
    );
    return bridge;
}

class Bridge<Operations> implements Panel<Operations> {
    context: PageContext;
    readonly #port: Port;
    readonly #listeners = new Set<(context: PageContext) => void>();
    readonly #waiting = new Map<number, Waiting>();
    #last = 0;

    constructor(port: Port, context: PageContext) {
        this.#port = port;
        this.context = context;
        this.#wear(context);
        port.onmessage = ({ data }) => this.#take(data as Message);
    }

    onContext(listener: (context: PageContext) => void): () => void {
        this.#listeners.add(listener);
        return () => this.#listeners.delete(listener);
    }

    async call<Id extends keyof Operations & string>(
        operationId: Id,
        ...[request]: RequestArguments<Operations[Id]>
    ): Promise<AnswerOf<Operations[Id]>> {
        // What the operation answers is what its generated types say.
        return (await this.#ask('call', { operationId, ...request })) as AnswerOf<Operations[Id]>;
    }

    async *follow<Id extends keyof Operations & string>(
        operationId: Id,
        ...[request]: RequestArguments<Operations[Id]>
    ): AsyncGenerator<PageEvent> {
        const state: {
            readonly events: PageEvent[];
            end: { readonly error: PanelError | null } | null;
            wake: () => void;
        } = {
            events: [],
            end: null,
            wake: () => undefined
        };
        const { id, answer } = this.#begin('follow', { operationId, ...request }, ({ event, data }) => {
            state.events.push({ event: String(event), data });
            state.wake();
        });
        const end = (error: PanelError | null): void => {
            state.end = { error };
            state.wake();
        };
        answer.then(() => end(null), end);
        try {
            for (;;) {
                const event = state.events.shift();
                if (event !== undefined) {
                    yield event;
                } else if (state.end === null) {
                    await new Promise<void>((resolve) => (state.wake = resolve));
                } else if (state.end.error === null) {
                    return;
                } else {
                    throw state.end.error;
                }
            }
        } finally {
            this.#tell('cancel', { id });
        }
    }

    async download<Id extends keyof Operations & string>(
        operationId: Id,
        ...[request]: RequestArguments<Operations[Id]>
    ): Promise<void> {
        await this.#ask('download', { operationId, ...request });
    }

    async upload(
        operationId: keyof Operations & string,
        file: Blob,
        { signal, onProgress, ...options }: UploadOptions = {}
    ): Promise<PageAnswer> {
        const { id, answer } = this.#begin('upload', { ...options, operationId, body: file }, (progress) =>
            onProgress?.(Number(progress['sent']), Number(progress['total']))
        );
        signal?.addEventListener('abort', () => this.#tell('cancel', { id }));
        return (await answer) as PageAnswer;
    }

    open(address: string, onMessage: (data: string | ArrayBuffer) => void): PageSocket {
        const { id, answer } = this.#begin('open', { address }, ({ data }) =>
            onMessage(data as string | ArrayBuffer)
        );
        return {
            send: (data) => this.#tell('send', { id, data }),
            close: () => this.#tell('cancel', { id }),
            closed: answer as PageSocket['closed']
        };
    }

    async navigate(location: string): Promise<void> {
        await this.#ask('navigate', { location });
    }

    async confirm(question: string, action?: string): Promise<boolean> {
        return (await this.#ask('confirm', { question, action })) === true;
    }

    async toast(text: string, tone: 'good' | 'bad' = 'good'): Promise<void> {
        await this.#ask('toast', { text, tone });
    }

    async title(text: string): Promise<void> {
        await this.#ask('title', { text });
    }

    async resize(height: number): Promise<void> {
        await this.#ask('resize', { height });
    }

    async #ask(method: string, params: object): Promise<unknown> {
        return this.#begin(method, params, () => undefined).answer;
    }

    #begin(
        method: string,
        params: object,
        tell: Waiting['tell']
    ): { readonly id: number; readonly answer: Promise<unknown> } {
        this.#last += 1;
        const id = this.#last;
        const answer = new Promise<unknown>((resolve, reject) => {
            this.#waiting.set(id, { resolve, reject, tell });
            this.#port.postMessage({ jsonrpc: '2.0', id, method, params });
        });
        return { id, answer };
    }

    #tell(method: string, params: object): void {
        this.#port.postMessage({ jsonrpc: '2.0', method, params });
    }

    #take({ id, method, params, result, error }: Message): void {
        if (method === 'context') {
            this.context = params as PageContext;
            this.#wear(this.context);
            this.#listeners.forEach((listener) => listener(this.context));
        } else if (method === 'event') {
            const event = params as Readonly<Record<string, unknown>>;
            this.#waiting.get(Number(event['id']))?.tell(event);
        } else if (id !== undefined) {
            this.#answer(id, result, error);
        }
    }

    #answer(id: number, result: unknown, error: Message['error']): void {
        const waiting = this.#waiting.get(id);
        this.#waiting.delete(id);
        const answer = (result ?? {}) as Partial<PageAnswer>;
        if (error !== undefined) {
            waiting?.reject(new PanelError(0, error.code, error.message, error.data));
        } else if ((answer.status ?? 0) >= 400) {
            const { status = 0, code = 0, message = '', data } = answer;
            waiting?.reject(new PanelError(status, code, message, data));
        } else {
            waiting?.resolve(result);
        }
    }

    /** Puts the colours, the scheme and the language of the panel on the document. */
    #wear({ colors, scheme, language }: PageContext): void {
        const root = browser.document.documentElement;
        Object.entries(colors).forEach(([name, value]) => root.style.setProperty(name, value));
        root.style.colorScheme = scheme;
        root.lang = language;
    }
}
