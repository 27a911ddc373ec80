/** A publisher of a signed catalogue: its folder, its keys and signatures made by minisign itself, and a small server. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

const folders = (process.env['PATH'] ?? '').split(':');

/** Why tests with signatures cannot run here; undefined where they can. */
export const noMinisign = folders.some((folder) => existsSync(join(folder, 'minisign')))
    ? undefined
    : 'minisign is not installed';

/** An App document, or an index: what a test changes of it. */
export type Part = Readonly<Record<string, unknown>>;

/** A PNG of one point. */
export const png = Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
    'base64'
);

/** SHA-256 in hex digits. */
export const sha256 = (bytes: string | Buffer): string => createHash('sha256').update(bytes).digest('hex');

/** A document with everything that it must have. */
export const appDocument = (more: Part = {}): Part => ({
    id: 'wiki',
    version: '1.0.0',
    title: { en: 'Wiki', de: 'Das Wiki' },
    tagline: { en: 'Pages that everyone edits' },
    description: { en: '# A wiki\n\nIt keeps *pages*.' },
    changelog: [{ version: '1.0.0', text: { en: 'The first one.' } }],
    website: 'https://wiki.example',
    license: 'MIT',
    categories: ['office'],
    architectures: ['amd64', 'arm64'],
    form: [],
    compose: 'services: { web: { image: "registry.example/wiki:1" } }',
    images: { 'registry.example/wiki:1': `sha256:${'a'.repeat(64)}` },
    main: { service: 'web', port: 80 },
    ...more
});

/** One publisher. */
export class Publisher implements AsyncDisposable {
    readonly folder: string;
    readonly requests: string[] = [];
    /** Answers in place of a file, by path. */
    readonly answers = new Map<string, (request: IncomingMessage, response: ServerResponse) => void>();
    readonly #server: Server;
    #sequence = 0;

    private constructor(folder: string, server: Server) {
        this.folder = folder;
        this.#server = server;
    }

    static async start(): Promise<Publisher> {
        const folder = mkdtempSync(join(tmpdir(), 'pub-'));
        const server = createServer((request, response) => publisher.#serve(request, response));
        const publisher = new Publisher(folder, server);
        mkdirSync(join(folder, 'www'));
        await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
        return publisher;
    }

    get port(): number {
        return (this.#server.address() as AddressInfo).port;
    }

    /** Makes a key, and gives the line of its public half. */
    key(name = 'first'): string {
        const place = join(this.folder, name);
        if (!existsSync(`${place}.pub`)) {
            execFileSync('minisign', ['-G', '-W', '-p', `${place}.pub`, '-s', `${place}.key`]);
        }
        return readFileSync(`${place}.pub`, 'utf8').split('\n')[1] ?? '';
    }

    /** Puts a file there. */
    write(path: string, content: string | Buffer): void {
        const place = join(this.folder, 'www', path);
        mkdirSync(dirname(place), { recursive: true });
        writeFileSync(place, content);
    }

    /** Signs the index that lies there. */
    sign(key = 'first', options: readonly string[] = []): void {
        this.key(key);
        const index = join(this.folder, 'www', 'index.json');
        execFileSync('minisign', ['-S', ...options, '-s', join(this.folder, `${key}.key`), '-m', index]);
    }

    /** Writes documents and a signed index of them. */
    publish(documents: readonly Part[], more: Part = {}, key = 'first'): void {
        this.#sequence += 1;
        const apps = documents.map((document) => {
            const path = `apps/${String(document['id'])}.json`;
            const text = JSON.stringify(document);
            this.write(path, text);
            const { id, version, title, tagline, categories, architectures } = document;
            return { id, version, title, tagline, categories, architectures, path, sha256: sha256(text) };
        });
        this.write(
            'index.json',
            JSON.stringify({
                format: 'portico-apps',
                formatVersion: 1,
                name: 'Example',
                sequence: this.#sequence,
                expiresAt: new Date(Date.now() + 86_400_000).toISOString(),
                categories: [{ id: 'office', title: { en: 'Office', de: 'Büro' } }],
                apps,
                ...more
            })
        );
        this.sign(key);
    }

    async close(): Promise<void> {
        this.#server.closeAllConnections();
        await new Promise((resolve) => this.#server.close(resolve));
        rmSync(this.folder, { recursive: true, force: true });
    }

    [Symbol.asyncDispose](): Promise<void> {
        return this.close();
    }

    #serve(request: IncomingMessage, response: ServerResponse): void {
        const path = (request.url ?? '/').slice(1);
        this.requests.push(path);
        const answer = this.answers.get(path);
        const place = join(this.folder, 'www', path);
        if (answer !== undefined) {
            answer(request, response);
        } else if (existsSync(place)) {
            response.end(readFileSync(place));
        } else {
            response.writeHead(404).end();
        }
    }
}
