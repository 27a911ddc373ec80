/** Hosts and certificates of a test's panel, in memory, under the panel's rules. */
import type { Grants } from '../boundary/grants.ts';
import { errors } from '../plugin-errors.ts';
import type { AppliedHost, Certificate, Host, UpstreamState } from '../serving.ts';
import type { Caller } from './actors.ts';

type Fields = Readonly<Record<string, unknown>>;

/** What the panel serves. The test puts rows in, and sees what the plugin made of them. */
export class ServingFake {
    readonly hosts: Host[] = [];
    readonly certificates: Certificate[] = [];
    /** What the engine says of each upstream; what is not here has nothing in flight and is healthy. */
    readonly upstreams = new Map<string, UpstreamState>();
    #next = 1;
    #revision = 0;

    /** Puts a host there that the plugin finds; by default a person made it. */
    addHost(host: { readonly domain: string } & Partial<Host>): Host {
        return this.#save({
            id: this.#next++,
            version: 1,
            upstream: null,
            enabled: true,
            owner: null,
            state: 'applied',
            ...host
        });
    }

    addCertificate(certificate: { readonly name: string } & Partial<Certificate>): Certificate {
        const added: Certificate = {
            id: this.#next++,
            domains: [],
            notAfter: new Date(Date.now() + 90 * 86_400_000),
            owner: null,
            ...certificate
        };
        this.certificates.push(added);
        return added;
    }

    /** What a change of a host answers. */
    applied(host: Host): AppliedHost {
        this.#revision += 1;
        return { host: this.#save(host), applied: true, reloaded: false, revision: this.#revision };
    }

    #save(host: Host): Host {
        if (this.hosts.some(({ id, domain }) => id !== host.id && domain === host.domain)) {
            throw errors.conflict('domain');
        }
        const at = this.hosts.findIndex(({ id }) => id === host.id);
        this.hosts.splice(at < 0 ? this.hosts.length : at, at < 0 ? 0 : 1, host);
        return host;
    }
}

/** The doors of hosts and certificates, for one plugin. */
export function createServingDoors(serving: ServingFake, grants: Grants) {
    const list = ({
        owner,
        domain
    }: {
        readonly owner?: string;
        readonly domain?: string;
    }): readonly Host[] => {
        if (grants.hosts === null) {
            throw grants.missing('hosts');
        }
        return serving.hosts.filter(
            (host) =>
                (grants.hosts !== 'own' || host.owner === grants.plugin) &&
                (owner === undefined || host.owner === owner) &&
                (domain === undefined || host.domain === domain)
        );
    };
    const writable = (id: number | null, as: Caller | null, fields: Fields): Host | undefined => {
        if (grants.hosts !== 'own' && grants.hosts !== 'write') {
            throw grants.missing(grants.hosts === null ? 'hosts' : 'hosts: write');
        }
        const found = id === null ? undefined : list({}).find((host) => host.id === id);
        if (id !== null && found === undefined) {
            throw errors.notFound(
                `There is no host ${id}${grants.hosts === 'own' ? ` of ${grants.plugin}` : ''}`
            );
        }
        if (as !== null && !as.can('hosts:write')) {
            throw errors.forbidden('hosts:write');
        }
        if (!covers(fields, grants)) {
            throw errors.forbidden('hosts:unsafe');
        }
        return found;
    };
    const current = (host: Host, version: number | null): Host => {
        if (version !== null && version !== host.version) {
            throw errors.stale(host.version);
        }
        return host;
    };
    const certificates = (level: 'read' | 'write'): void => {
        if (grants.certificates === null || (level === 'write' && grants.certificates !== 'write')) {
            throw grants.missing(level === 'write' ? 'certificates: write' : 'certificates');
        }
    };
    return {
        list,
        create(fields: Fields, as: Caller | null): AppliedHost {
            writable(null, as, fields);
            if (typeof fields['domain'] !== 'string') {
                throw errors.invalid([{ path: 'domain', message: 'domain is required' }]);
            }
            return serving.applied(
                serving.addHost({ ...fields, domain: fields['domain'], owner: grants.plugin })
            );
        },
        update(id: number, change: Fields, version: number | null, as: Caller | null): AppliedHost {
            const host = current(writable(id, as, change) as Host, version);
            const enabled = (change['enabled'] ?? host.enabled) === true;
            return serving.applied({
                ...host,
                ...change,
                id,
                owner: host.owner,
                version: host.version + 1,
                state: enabled ? 'applied' : 'disabled'
            });
        },
        remove(id: number, version: number | null, as: Caller | null): void {
            const host = current(writable(id, as, {}) as Host, version);
            serving.hosts.splice(serving.hosts.indexOf(host), 1);
        },
        upstreams(id: number): readonly UpstreamState[] {
            const host = list({}).find((each) => each.id === id);
            if (host === undefined) {
                throw errors.notFound(`There is no host ${id}`);
            }
            const addresses = [
                host.upstream,
                ...((host['upstreams'] ?? []) as readonly { readonly address: string }[]).map(
                    ({ address }) => address
                )
            ].filter((each) => each !== null);
            return addresses.map(
                (address) => serving.upstreams.get(address) ?? { address, requests: 0, healthy: true }
            );
        },
        certificates({
            owner,
            domain
        }: {
            readonly owner?: string;
            readonly domain?: string;
        }): readonly Certificate[] {
            certificates('read');
            return serving.certificates.filter(
                (each) =>
                    (owner === undefined || each.owner === owner) &&
                    (domain === undefined || each.domains.includes(domain))
            );
        },
        upload({
            name,
            certificate,
            key
        }: {
            readonly name: string;
            readonly certificate: string;
            readonly key: string;
        }): Certificate {
            certificates('write');
            if (!certificate.includes('-----BEGIN CERTIFICATE-----') || !key.includes('PRIVATE KEY-----')) {
                throw errors.invalid([{ path: 'certificate', message: 'certificate and key are PEM texts' }]);
            }
            return serving.addCertificate({ name });
        },
        removeCertificate(id: number): void {
            certificates('write');
            const at = serving.certificates.findIndex((each) => each.id === id);
            if (at < 0) {
                throw errors.notFound(`There is no certificate ${id}`);
            }
            serving.certificates.splice(at, 1);
        }
    };
}

/** What reaches the machine's own services needs the plugin's own grant for that very path or socket. */
function covers(fields: Fields, grants: Grants): boolean {
    const upstreams = ((fields['upstreams'] ?? []) as readonly { readonly address?: unknown }[]).map(
        ({ address }) => address
    );
    const sockets = [fields['upstream'], ...upstreams]
        .filter((each): each is string => typeof each === 'string' && each.startsWith('unix/'))
        .map((each) => each.slice('unix/'.length));
    const folders = ['static', 'php']
        .map((type) => (fields[type] as { readonly root?: unknown } | null | undefined)?.root)
        .filter((each): each is string => typeof each === 'string');
    return (
        ((fields['advanced'] ?? []) as readonly unknown[]).length === 0 &&
        sockets.every((path) => grants.has('sockets', path.startsWith('/') ? path : `/${path}`)) &&
        folders.every((path) =>
            grants
                .list('files')
                .some(
                    (folder) =>
                        folder === '*' || path === folder || path.startsWith(`${folder.replace(/\/$/, '')}/`)
                )
        )
    );
}
