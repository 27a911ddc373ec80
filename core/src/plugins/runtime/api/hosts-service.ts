/** Hosts and certificates for a plugin: only what its capability covers, and what it creates is owned by it. */
import { realpathSync } from 'node:fs';

import {
    type AppliedHost,
    type Certificate,
    type EngineAccount,
    errors,
    type Host,
    type ProbeAnswer,
    type ProbeOptions,
    type Reply,
    type UpstreamState
} from '@portico/sdk';
import { boundaryErrors, type Grants } from '@portico/sdk/host';

import { isMetadataHost } from '../../../platform/address/metadata.ts';
import type { Call, Caller } from '../../../platform/call.ts';
import { fail } from '../../../platform/errors.ts';
import type { CertificatesPort, HostsPort } from '../ports.ts';

/** What hosts and certificates of a plugin need. */
export interface PluginHostsOptions {
    readonly grants: Grants;
    readonly hosts: HostsPort;
    readonly certificates: CertificatesPort;
    /** Folders and sockets that no grant opens. */
    forbidden(): readonly string[];
    /** Makes the call: for the plugin itself with `can`, or for the given caller. */
    call(as: Caller | null, can: (permission: string) => boolean, ifMatch: number | null): Call;
}

type Body = Readonly<Record<string, unknown>>;

/** Fields that only people read, and names: they lead nowhere. */
const told = new Set(['notes', 'tags', 'domain', 'aliases']);

/** Checks each use of hosts and certificates against the plugin's capabilities, then passes it on. */
export class PluginHosts {
    readonly #options: PluginHostsOptions;

    constructor(options: PluginHostsOptions) {
        this.#options = options;
    }

    list({ owner, domain }: { readonly owner?: string; readonly domain?: string }): readonly Host[] {
        const { grants, hosts } = this.#options;
        const { hosts: capability, plugin } = grants;
        if (capability === null) {
            throw grants.missing('hosts');
        }
        return hosts
            .all()
            .filter(
                (host) =>
                    (capability !== 'own' || host.owner === plugin) &&
                    (owner === undefined || host.owner === owner) &&
                    (domain === undefined || host.domain === domain)
            );
    }

    async create(body: Body, as: Caller | null): Promise<AppliedHost> {
        this.#writable(null);
        return this.#applied(
            await this.#options.hosts.create(body, this.#call(body, as, null), this.#options.grants.plugin)
        );
    }

    async update(id: number, change: Body, version: number | null, as: Caller | null): Promise<AppliedHost> {
        this.#writable(id);
        return this.#applied(await this.#options.hosts.update(id, change, this.#call(change, as, version)));
    }

    async remove(id: number, version: number | null, as: Caller | null): Promise<void> {
        this.#writable(id);
        await this.#options.hosts.remove(id, this.#call({}, as, version));
    }

    async upstreams(id: number): Promise<readonly UpstreamState[]> {
        const host = this.list({}).find((each) => each.id === id);
        if (host === undefined) {
            throw fail.NOT_FOUND(null, { message: `There is no host ${id}` });
        }
        const own = new Set(allAddressesOf(host).map(bare));
        const states = (await this.#options.hosts.upstreams()).filter(({ address }) =>
            own.has(bare(address))
        );
        return states;
    }

    /** Asks an address that a host of this plugin could forward to anyway. */
    async probe(address: string, options: ProbeOptions): Promise<ProbeAnswer> {
        const { path = '/', method = 'GET', timeoutSeconds = 5 } = options;
        if (
            typeof address !== 'string' ||
            !/^\/[\x21-\x7e]{0,2000}$/.test(path) ||
            !['GET', 'HEAD'].includes(method) ||
            !(timeoutSeconds >= 1 && timeoutSeconds <= 60)
        ) {
            throw errors.invalid([
                { path: 'probe', message: 'An address, a path, GET or HEAD, 1 to 60 seconds' }
            ]);
        }
        const { grants, hosts } = this.#options;
        const upstreams = new Set(
            this.list({})
                .flatMap((host) => addressesOf(host))
                .map(bare)
        );
        if (
            !(address.startsWith('unix/')
                ? this.#opensSocket(address)
                : isLoopback(address) || upstreams.has(bare(address)))
        ) {
            throw grants.missing(`hosts: the upstream ${address}`);
        }
        try {
            return await hosts.probe(address, options);
        } catch (error) {
            throw boundaryErrors.PROBE_FAILED({ address, why: (error as Error).message }, { cause: error });
        }
    }

    /** The engine's account. */
    async account(): Promise<EngineAccount | null> {
        this.list({});
        return this.#options.hosts.account();
    }

    #opensSocket(address: string): boolean {
        const { grants, forbidden } = this.#options;
        const path = address.slice('unix/'.length);
        const real = realPath(path);
        return (
            address.startsWith('unix//') &&
            !path.split('/').includes('..') &&
            grants.has('sockets', path) &&
            !forbidden().some((folder) => `${real}/`.startsWith(`${realPath(folder)}/`))
        );
    }

    async certificates({
        owner,
        domain
    }: {
        readonly owner?: string;
        readonly domain?: string;
    }): Promise<readonly Certificate[]> {
        if (this.#options.grants.certificates === null) {
            throw this.#options.grants.missing('certificates');
        }
        return (await this.#options.certificates.all()).filter(
            (each) =>
                (owner === undefined || each.owner === owner) &&
                (domain === undefined || each.domains.includes(domain))
        );
    }

    async upload(body: {
        readonly name: string;
        readonly certificate: string;
        readonly key: string;
    }): Promise<Certificate> {
        this.#certificatesWritable();
        return this.#options.certificates.upload(
            body,
            this.#options.call(null, (permission) => permission === 'certificates:write', null),
            this.#options.grants.plugin
        );
    }

    async removeCertificate(id: number): Promise<void> {
        this.#certificatesWritable();
        await this.#options.certificates.remove(
            id,
            this.#options.call(null, (permission) => permission === 'certificates:write', null)
        );
    }

    #certificatesWritable(): void {
        if (this.#options.grants.certificates !== 'write') {
            throw this.#options.grants.missing('certificates: write');
        }
    }

    #writable(id: number | null): void {
        const { grants, hosts } = this.#options;
        const { hosts: capability, plugin } = grants;
        if (capability !== 'own' && capability !== 'write') {
            throw grants.missing(capability === null ? 'hosts' : 'hosts: write');
        }
        if (
            id !== null &&
            capability === 'own' &&
            !hosts.all().some((host) => host.id === id && host.owner === plugin)
        ) {
            throw fail.NOT_FOUND(null, { message: `There is no host ${id} of ${plugin}` });
        }
    }

    /** A path or socket of this machine needs the plugin's own grant for exactly that path or socket; what no grant covers needs a person. */
    #call(body: Body, as: Caller | null, version: number | null): Call {
        const covered = this.#covers(body);
        if (as !== null) {
            if (!as.can('hosts:write')) {
                throw fail.FORBIDDEN({ permission: 'hosts:write' });
            }
            return this.#options.call(
                as,
                (permission) => as.can(permission) && (permission !== 'hosts:unsafe' || covered),
                version
            );
        }
        return this.#options.call(
            null,
            (permission) =>
                permission === 'hosts:write' ||
                permission === 'hosts:read' ||
                permission === 'certificates:read' ||
                (permission === 'hosts:unsafe' && covered),
            version
        );
    }

    /** Whether the plugin's grants cover every unsafe part of a body. A text that looks like a socket counts in every field. */
    #covers(body: Body): boolean {
        const { grants } = this.#options;
        const { advanced, headers, access } = body as {
            readonly advanced?: readonly unknown[] | null;
            readonly headers?: unknown;
            readonly access?: {
                readonly forwardAuth?: { readonly copyHeaders?: readonly unknown[] } | null;
            } | null;
        };
        const setsHost =
            /"name":"host"/i.test(JSON.stringify(headers ?? null)) ||
            (access?.forwardAuth?.copyHeaders ?? []).some((name) => String(name).toLowerCase() === 'host');
        const fields = Object.fromEntries(Object.entries(body).filter(([field]) => !told.has(field)));
        const given = texts(fields);
        const sockets = given.filter((text) => /^\s*unix/i.test(text));
        const folders = ['static', 'php']
            .flatMap((type) => (body[type] as { readonly root?: unknown } | null | undefined)?.root ?? [])
            .map(String);
        return (
            (advanced ?? []).length === 0 &&
            !setsHost &&
            !given.some((text) => isMetadataHost(hostOf(text))) &&
            [...sockets, ...folders].every((path) => !path.split('/').includes('..')) &&
            sockets.every(
                (address) =>
                    address.startsWith('unix//') && grants.has('sockets', address.slice('unix/'.length))
            ) &&
            folders.every((path) =>
                grants
                    .list('files')
                    .some(
                        (folder) =>
                            folder === '*' ||
                            path === folder ||
                            path.startsWith(`${folder.replace(/\/$/, '')}/`)
                    )
            )
        );
    }

    #applied({ data, headers }: Reply<Host>): AppliedHost {
        return {
            host: data,
            applied: data.state === 'applied' || data.state === 'disabled',
            reloaded: headers['x-engine-reload'] === 'true',
            revision: this.#options.hosts.revision()
        };
    }
}

/** Host of an address or URL; empty for other texts. */
function hostOf(text: string): string {
    const [, bracketed, plain = ''] = /^(?:\w+:\/\/)?(?:\[([^\]]*)\]|([^/:]*))/.exec(text.trim()) ?? [];
    return bracketed ?? plain;
}

function texts(value: unknown): readonly string[] {
    return typeof value === 'string'
        ? [value]
        : typeof value === 'object' && value !== null
          ? Object.values(value).flatMap(texts)
          : [];
}

/** The addresses of the upstreams and FastCGI servers of a host. */
export function allAddressesOf(host: Host): readonly string[] {
    return [...addressesOf(host), ...fastcgiAddressesOf(host)].filter((address) => address !== null);
}

function addressesOf(host: Host): readonly (string | null)[] {
    const upstreams = (host['upstreams'] ?? []) as readonly { readonly address: string }[];
    return [host.upstream, ...upstreams.map(({ address }) => address)];
}

function fastcgiAddressesOf(host: Host): readonly string[] {
    const { fastcgi = [], upstreams = [] } = (host['php'] ?? {}) as {
        readonly fastcgi?: string;
        readonly upstreams?: readonly { readonly address: string }[];
    };
    return [fastcgi, upstreams.map(({ address }) => address)].flat();
}

function isLoopback(address: string): boolean {
    return /^(?:https?:\/\/)?(?:localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\]):\d{1,5}\/?$/.test(address);
}

function realPath(path: string): string {
    try {
        return realpathSync(path);
    } catch {
        return path;
    }
}

/** `http://127.0.0.1:80` and `127.0.0.1:80` are one address. */
function bare(address: string | null): string {
    return (address ?? '').replace(/^[a-z0-9]+:\/\//, '');
}
