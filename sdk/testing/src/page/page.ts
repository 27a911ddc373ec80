/** A page that a plugin brings, in a test without a browser: the page's own code and the SDK's `connect()`, with the panel's end of the bridge as a double. */
import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type { MessagePort } from 'node:worker_threads';

import { type AnyOperations, connect, type PageContext, type Panel } from '@portico/sdk/page';

import type { Who } from '../doubles/people.ts';
import type { TestHost } from '../panel/host.ts';
import { BridgeRefusal, type PageWork, serve } from './bridge.ts';
import { type Brought, PageRequests, record } from './requests.ts';
import { surround } from './surroundings.ts';

/** What a test says of the user and the place of a page. */
export interface TestPageOptions {
    /** Id of the page in the manifest's `contributes.pages`. */
    readonly page: string;
    /** Who sees it; default: an admin. */
    readonly as?: Who;
    /** What differs from a page in the menu of a light, English panel. */
    readonly context?: Partial<Omit<PageContext, 'permissions'>>;
    /** What the user answers to each question. A page that asks without it gets an error that says so. */
    readonly confirm?: boolean | ((question: string, action: string) => boolean);
}

/**
 * Opens a page of the plugin under test. One at a time: a page uses the global object as a browser's.
 *
 * @typeParam Operations - those of the plugin, as `portico plugin dev` writes them
 * @throws TypeError when the manifest has no such page, or the user may not see it
 */
export async function openTestPage<Operations = AnyOperations>(
    host: TestHost,
    options: TestPageOptions
): Promise<TestPage<Operations>> {
    const pages = host.opened.options.package.manifest.contributes?.pages ?? [];
    const brought = pages.find(({ id }) => id === options.page);
    if (brought === undefined) {
        const known = pages.map(({ id }) => id).join(', ');
        throw new TypeError(
            known === ''
                ? `The manifest of ${host.name} brings no page: give createTestHost its package`
                : `The manifest of ${host.name} has no page ${options.page}, only ${known}`
        );
    }
    const page = new TestPage<Operations>(
        host,
        { ...brought, uses: brought.uses ?? [], place: brought.place ?? 'nav' },
        options
    );
    try {
        await page.connect();
        return page;
    } catch (error) {
        await page.close();
        throw error;
    }
}

/** A page that is open, and what it asked of the panel around it. Close it, or write `await using`. */
export class TestPage<Operations = AnyOperations> implements AsyncDisposable {
    /** What the page told the user. */
    readonly toasts: { readonly text: string; readonly tone: 'good' | 'bad' }[] = [];
    /** What the user was asked, also by the panel before what cannot be undone. */
    readonly questions: { readonly question: string; readonly action: string; readonly answer: boolean }[] =
        [];
    /** Files that the browser saved. */
    readonly saved: { readonly operationId: string; readonly bytes: Uint8Array }[] = [];
    /** Every operation that the page called, refused ones included. */
    readonly calls: { readonly operationId: string; readonly status: number }[] = [];
    /** Screens of the panel that the page led to, such as `/hosts/1`. */
    readonly led: string[] = [];
    /** The title of the screen. */
    title: string;
    /** Height of the frame in pixels; null until the page sets it. */
    height: number | null = null;
    readonly #requests: PageRequests;
    readonly #confirm: TestPageOptions['confirm'];
    readonly #ports = new Set<MessagePort>();
    readonly #leave: () => void;
    #context: PageContext;
    #panel: Panel<Operations> | null = null;
    #loaded = 0;

    /** @internal */
    constructor(host: TestHost, page: Brought, options: TestPageOptions) {
        const { caller } = host.opened.people.person(options.as ?? 'admin');
        const prefix = `${host.name}:`;
        const permissions = caller.permissions
            .filter((each) => each.startsWith(prefix))
            .map((each) => each.slice(prefix.length));
        if (!permissions.includes(page.access)) {
            throw new TypeError(
                `The page ${page.id} asks for ${prefix}${page.access}, which ${caller.username ?? 'the caller'} lacks`
            );
        }
        this.title = page.title;
        this.#confirm = options.confirm;
        this.#context = {
            colors: { '--portico-accent': '#2156c9' },
            scheme: 'light',
            language: 'en',
            visible: true,
            place: page.place,
            host: null,
            location: '',
            ...options.context,
            permissions
        };
        this.#requests = new PageRequests({
            host,
            page,
            who: options.as ?? 'admin',
            called: (operationId, status) => void this.calls.push({ operationId, status }),
            saved: (operationId, bytes) => void this.saved.push({ operationId, bytes }),
            ask: (question, action) => this.#ask(question, action)
        });
        this.#leave = surround((port) => {
            this.#ports.add(port);
            serve(port, (work) => this.#answer(work));
            return this.#context;
        });
    }

    /** The panel, as `connect()` gives it to the page: for tests of functions that take one. */
    get panel(): Panel<Operations> {
        if (this.#panel === null) {
            throw new Error('The page is not connected');
        }
        return this.#panel;
    }

    /** What the page knows of the panel around it. */
    get context(): PageContext {
        return this.#context;
    }

    /** Lets the SDK connect. @internal */
    async connect(): Promise<void> {
        this.#panel = await connect<Operations>();
    }

    /**
     * Runs the page's module from its beginning, as the frame does. What it does with a document needs one: register a DOM library first.
     *
     * @param entry - address or absolute path of the module, such as `new URL('../assets/page.js', import.meta.url)`
     */
    async load(entry: string | URL): Promise<void> {
        const url = new URL(entry instanceof URL ? entry.href : pathToFileURL(entry).href);
        // A module runs once for each address.
        this.#loaded += 1;
        url.searchParams.set('loaded', `${process.pid}-${performance.now()}-${this.#loaded}`);
        await import(url.href);
    }

    /** Changes the context, as when the user hides the tab or chooses another language. Resolves when the page was told. */
    async change(context: Partial<Omit<PageContext, 'permissions'>>): Promise<void> {
        this.#context = { ...this.#context, ...context };
        this.#ports.forEach((port) =>
            port.postMessage({ jsonrpc: '2.0', method: 'context', params: this.#context })
        );
        // A message passes from one end of a port to the other in a turn of its own.
        await pause(5);
    }

    /** Ends the page, and gives the global object back. */
    async close(): Promise<void> {
        this.#leave();
        await this.#requests.close();
    }

    [Symbol.asyncDispose](): Promise<void> {
        return this.close();
    }

    async #answer(work: PageWork): Promise<unknown> {
        const { method, params } = work;
        switch (method) {
            case 'confirm':
                return this.#ask(String(params['question']), String(params['action'] ?? 'Yes'));
            case 'toast':
                this.toasts.push({
                    text: String(params['text']),
                    tone: params['tone'] === 'bad' ? 'bad' : 'good'
                });
                return null;
            case 'title':
                this.title = String(params['text']);
                return null;
            case 'resize':
                this.height = Number(params['height']);
                return null;
            case 'navigate':
                await this.#navigate(String(params['location']));
                return null;
            case 'call':
            case 'download':
            case 'upload':
            case 'follow':
            case 'open':
                return this.#requests.answer(work, record(params));
            default:
                throw new BridgeRefusal('NO_METHOD', `There is no ${method}`);
        }
    }

    /** A path leads to a screen; anything else is the page's part of the address. */
    async #navigate(location: string): Promise<void> {
        if (location.startsWith('/')) {
            this.led.push(location);
        } else {
            await this.change({ location });
        }
    }

    #ask(question: string, action: string): boolean {
        if (this.#confirm === undefined) {
            throw new BridgeRefusal(
                'INTERNAL',
                `The user is asked ${JSON.stringify(question)}: say what the user answers, as confirm of openTestPage`
            );
        }
        const answer = typeof this.#confirm === 'boolean' ? this.#confirm : this.#confirm(question, action);
        this.questions.push({ question, action, answer });
        return answer;
    }
}
