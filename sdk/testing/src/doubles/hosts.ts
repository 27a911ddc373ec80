/** The hosts and certificates of a test's panel, in memory. What a plugin may do with them, the panel's own code says. */
import {
    allAddressesOf,
    build,
    type Call,
    type CertificatesPort,
    checkedBody,
    Faults,
    type HostsPort,
    mayChange,
    refuse
} from '@portico/core/plugin-runtime';
import {
    type Certificate,
    type EngineAccount,
    errors,
    type Host,
    type ProbeAnswer,
    reply,
    type UpstreamState
} from '@portico/sdk';

type Fields = Readonly<Record<string, unknown>>;

const reload = { headers: { 'x-engine-reload': 'false' } };

/** The test puts rows in, and sees what the plugin made of them. */
export class TestHosts {
    readonly hosts: Host[] = [];
    readonly certificates: Certificate[] = [];
    /** What the engine says of each upstream; what is not here has nothing in flight and is healthy. */
    readonly upstreams = new Map<string, UpstreamState>();
    /** What an address answers to `ctx.hosts.probe`; what is not here gives no answer. */
    readonly probes = new Map<string, ProbeAnswer>();
    /** The account of the engine. */
    account: EngineAccount | null = { user: 'caddy', group: 'caddy' };
    #lastId = 0;
    #revision = 0;

    /** Puts a host there that the plugin finds; by default a person made it. */
    addHost(host: { readonly domain: string } & Partial<Host>): Host {
        const id = (this.#lastId += 1);
        return this.#save({
            id,
            version: 1,
            upstream: null,
            enabled: true,
            owner: null,
            state: 'applied',
            ...host
        });
    }

    /** Puts a certificate there, good for 90 days unless it says otherwise. */
    addCertificate(certificate: { readonly name: string } & Partial<Certificate>): Certificate {
        const id = (this.#lastId += 1);
        const notAfter = new Date(Date.now() + 90 * 86_400_000);
        const added: Certificate = { id, domains: [], notAfter, owner: null, ...certificate };
        this.certificates.push(added);
        return added;
    }

    /** Hosts as the runtime takes them. @internal */
    readonly hostsPort: HostsPort = {
        all: () => this.hosts,
        create: async (body, call, owner) => {
            check(call, null, body);
            return reply.with(this.addHost({ ...body, domain: String(body['domain']), owner }), reload);
        },
        update: async (id, change, call) => {
            const host = this.#current(id, call, change);
            const state = (change['enabled'] ?? host.enabled) === true ? 'applied' : 'disabled';
            const { owner, version } = host;
            return reply.with(
                this.#save({ ...host, ...change, id, owner, version: version + 1, state }),
                reload
            );
        },
        remove: async (id, call) => {
            this.hosts.splice(this.hosts.indexOf(this.#current(id, call, {})), 1);
        },
        upstreams: async () =>
            this.hosts
                .flatMap(allAddressesOf)
                .map((address) => this.upstreams.get(address) ?? { address, requests: 0, healthy: true }),
        probe: async (address) => {
            const answer = this.probes.get(address);
            if (answer === undefined) {
                throw new Error(`the test says nothing: hosts.probes.set('${address}', …)`);
            }
            return answer;
        },
        account: async () => this.account,
        revision: () => this.#revision
    };

    /** Certificates as the runtime takes them. @internal */
    readonly certificatesPort: CertificatesPort = {
        all: async () => this.certificates,
        upload: async ({ name, certificate, key }, _call, owner) => {
            if (!certificate.includes('-----BEGIN CERTIFICATE-----') || !key.includes('PRIVATE KEY-----')) {
                throw errors.invalid([{ path: 'certificate', message: 'certificate and key are PEM texts' }]);
            }
            return this.addCertificate({ name, owner });
        },
        remove: async (id) => {
            const at = this.certificates.findIndex((each) => each.id === id);
            if (at < 0) {
                throw errors.notFound(`There is no certificate ${id}`);
            }
            this.certificates.splice(at, 1);
        }
    };

    #current(id: number, call: Call, change: Fields): Host {
        const host = this.hosts.find((each) => each.id === id);
        if (host === undefined) {
            throw errors.notFound(`There is no host ${id}`);
        }
        if (call.ifMatch !== null && call.ifMatch !== String(host.version)) {
            throw errors.stale(host.version);
        }
        check(call, host, change);
        return host;
    }

    #save(host: Host): Host {
        if (this.hosts.some(({ id, domain }) => id !== host.id && domain === host.domain)) {
            throw errors.conflict('domain');
        }
        const at = this.hosts.findIndex(({ id }) => id === host.id);
        this.hosts.splice(at < 0 ? this.hosts.length : at, at < 0 ? 0 : 1, host);
        this.#revision += 1;
        return host;
    }
}

/** Holds a change against the panel's own rules. @throws VALIDATION_FAILED 40001, FORBIDDEN 40300 */
function check(call: Call, before: Host | null, change: Fields): void {
    const known = new Faults();
    const faults = new Faults();
    const was = before === null ? null : siteOf(checkedBody('PUT', before), known);
    mayChange(
        call,
        was,
        siteOf({ ...before, ...checkedBody(before === null ? 'POST' : 'PUT', change) }, faults)
    );
    // A host that the test put there need not be whole.
    refuse(faults.list.filter(({ path }) => !known.list.some((fault) => fault.path === path)));
}

function siteOf(fields: Parameters<typeof build>[0], faults: Faults): ReturnType<typeof build>['site'] {
    return build(fields, { id: 0, before: null, hashes: new Map() }, faults).site;
}
