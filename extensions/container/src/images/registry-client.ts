/** Asks registries without the engine, where its API has no call for it: the protocol of OCI distribution, with passwords and with tokens. */
import { isFailure } from '@portico/sdk';

import type { Engine } from '../engine/engine.ts';
import type { Ctx } from '../settings.ts';
import { parseReference } from './reference.ts';
import type { Login, Registries } from './registries.ts';

const patienceMs = 30_000;
/** So long, what the engine said of registries is taken for its last word. */
const toldMs = 30_000;
/** Of images, and of lists of images for several platforms. */
const manifests = [
    'application/vnd.oci.image.index.v1+json',
    'application/vnd.docker.distribution.manifest.list.v2+json',
    'application/vnd.oci.image.manifest.v1+json',
    'application/vnd.docker.distribution.manifest.v2+json'
].join(', ');

/** What is read of Podman's account of itself. */
interface PodmanInfo {
    readonly registries?: Readonly<Record<string, { readonly Insecure?: boolean } | undefined>> | null;
}

/** Asks which image a name stands for now. */
export class RegistryClient {
    readonly #ctx: Ctx;
    readonly #engine: Engine;
    readonly #registries: Registries;
    /** What the engine last said of registries, and when. */
    #told: { readonly at: number; readonly registries: NonNullable<PodmanInfo['registries']> } | null = null;

    constructor(ctx: Ctx, parts: { readonly engine: Engine; readonly registries: Registries }) {
        this.#ctx = ctx;
        this.#engine = parts.engine;
        this.#registries = parts.registries;
    }

    /**
     * The digest of a name in its registry. Null where the registry has none, or gives no answer.
     *
     * @throws ENGINE_DOWN 50350: the engine knows which registries are asked without TLS
     */
    async digestOf(image: string): Promise<string | null> {
        const place = placeOf(image);
        if (place === null) {
            return null;
        }
        try {
            const scheme = (await this.#isInsecure(place.registry)) ? 'http' : 'https';
            const url = new URL(`${scheme}://${place.host}/v2/${place.path}/manifests/${place.version}`);
            let answer = await this.#ask(url, 'HEAD', null);
            const challenge = answer.headers.get('www-authenticate');
            if (answer.status === 401 && challenge !== null) {
                const login = await this.#registries.loginFor(image);
                answer = await this.#ask(url, 'HEAD', await this.#answerTo(challenge, url, login));
            }
            return answer.ok ? answer.headers.get('docker-content-digest') : null;
        } catch (error) {
            if (isFailure(error)) {
                throw error;
            }
            this.#ctx.log.warn('A registry could not be asked for a newer image', { image, error });
            return null;
        }
    }

    /** What the registry wants to be sent; null: there is no login for it here, or its server of tokens gives none. */
    async #answerTo(challenge: string, { protocol }: URL, login: Login | null): Promise<string | null> {
        const basic =
            login === null
                ? null
                : `Basic ${Buffer.from(`${login.username}:${login.password}`).toString('base64')}`;
        if (!/^bearer /i.test(challenge)) {
            return basic;
        }
        const wanted = Object.fromEntries(
            [...challenge.matchAll(/(\w+)="([^"]*)"/g)].map(([, name = '', value = '']) => [name, value])
        );
        const server = new URL(wanted['realm'] ?? '');
        if (server.protocol !== 'https:' && server.protocol !== protocol) {
            throw new Error(`The registry wants a password to be sent to ${server.host} without TLS`);
        }
        for (const name of ['service', 'scope']) {
            if (wanted[name] !== undefined) {
                server.searchParams.set(name, wanted[name]);
            }
        }
        const answer = await this.#ask(server, 'GET', basic);
        if (!answer.ok) {
            return null;
        }
        const { token: first, access_token: other } = (await answer.json()) as Record<string, unknown>;
        const token = first ?? other;
        return typeof token === 'string' ? `Bearer ${token}` : null;
    }

    #ask(url: URL, method: 'GET' | 'HEAD', authorization: string | null): Promise<Response> {
        return this.#ctx.fetch(url, {
            method,
            headers: { accept: manifests, ...(authorization === null ? {} : { authorization }) },
            signal: AbortSignal.timeout(patienceMs)
        });
    }

    /** Whether the engine is told to ask a registry without TLS. A check of many images asks it once. */
    async #isInsecure(registry: string): Promise<boolean> {
        const now = Date.now();
        if (this.#told === null || now - this.#told.at > toldMs) {
            const { registries } = await this.#engine.call<PodmanInfo>('GET', '/libpod/info', { patienceMs });
            this.#told = { at: now, registries: registries ?? {} };
        }
        return this.#told.registries[registry]?.Insecure === true;
    }
}

/** Where a name is asked for; null for what is no name. A digest says which image it is, also beside a tag. */
function placeOf(image: string) {
    const { registry, repository, tag, digest } = parseReference(image) ?? {};
    if (registry === undefined || repository === undefined) {
        return null;
    }
    const path = repository.startsWith(`${registry}/`) ? repository.slice(registry.length + 1) : repository;
    const isHub = registry === 'docker.io';
    return {
        registry,
        host: isHub ? 'registry-1.docker.io' : registry,
        path: isHub && !path.includes('/') ? `library/${path}` : path,
        version: digest ?? tag ?? 'latest'
    };
}
