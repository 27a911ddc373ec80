/** The serving half of the panel, put together: the engine, the hosts and certificates that it serves, and the hooks around their changes. */
import { adaptCaddyfile } from '../engine/caddy/adapt.ts';
import { findBinary } from '../engine/caddy/binary.ts';
import { CaddyDriver } from '../engine/caddy/caddy.ts';
import { ProxyEngine } from '../engine/engine.ts';
import { translateErrors } from '../engine/errors.ts';
import { type EngineFolders, engineHome } from '../engine/files/home.ts';
import type { EngineConfig, EngineDriver } from '../engine/port.ts';
import { unsupportedPlaceholders } from '../engine/render/placeholder.ts';
import type { Section } from '../engine/section.ts';
import type { EngineService } from '../engine/service.ts';
import { advancedOf, maskConfig } from '../engine/wire/mask.ts';
import { AcmeAccounts } from '../features/certificates/acme/accounts.ts';
import { EngineCertificates } from '../features/certificates/engine-certificates.ts';
import { createCertificateSection } from '../features/certificates/export/export-section.ts';
import type { CertificateEvents, TaskStarter } from '../features/certificates/ports.ts';
import { Certificates } from '../features/certificates/service.ts';
import { DatabaseCertificateStore } from '../features/certificates/store.ts';
import { createDnsProviderSection } from '../features/dns-providers/export-section.ts';
import { DnsProviders } from '../features/dns-providers/service.ts';
import { DnsProviderStore } from '../features/dns-providers/store.ts';
import { createChecklist } from '../features/hosts/checks/checklist.ts';
import { createHostSection } from '../features/hosts/export/export-section.ts';
import { HostList } from '../features/hosts/list.ts';
import type { HostHooks } from '../features/hosts/preparation.ts';
import { createReadable, type Readable } from '../features/hosts/rules/paths.ts';
import { covers } from '../features/hosts/rules/safety.ts';
import type { HostChange } from '../features/hosts/schema/bodies.ts';
import { Hosts } from '../features/hosts/service.ts';
import { DatabaseHostStore } from '../features/hosts/store.ts';
import type { Settings } from '../features/settings/settings.ts';
import type { Call } from '../platform/call.ts';
import type { Clock } from '../platform/clock.ts';
import type { Config } from '../platform/config.ts';
import type { Database } from '../platform/database/database.ts';
import { fail } from '../platform/errors.ts';
import { type CoreHooks, notifyLater } from '../platform/hooks.ts';
import type { Keyring } from '../platform/keyring.ts';
import type { Logger } from '../platform/log.ts';
import type { Outbound } from '../platform/outbound/client.ts';

export interface Serving {
    readonly driver: EngineDriver;
    readonly engine: EngineService;
    readonly hosts: Hosts;
    readonly certificates: Certificates;
    readonly dnsProviders: DnsProviders;
    /** Their parts of a document of the whole panel. */
    readonly sections: {
        readonly dnsProviders: Section;
        readonly certificates: Section;
        readonly hosts: Section;
    };
    /** Where nothing of a host or a plugin may lead: the data folder, the engine's own folders and its socket. Absolute. */
    forbidden(): readonly string[];
    /** Turns a Caddyfile into the engine's configuration. @throws ENGINE_REJECTED, ENGINE_UNAVAILABLE, TOOL_MISSING */
    adapt(caddyfile: string, signal: AbortSignal): Promise<EngineConfig>;
}

export interface ServingParts {
    readonly config: Config;
    readonly db: Database;
    readonly keyring: Keyring;
    readonly settings: Settings;
    readonly hooks: CoreHooks;
    readonly clock: Clock;
    readonly log: Logger;
    readonly tasks: TaskStarter;
    readonly outbound: Outbound;
    /** A call of the panel itself. */
    systemCall(): Call;
    /** Default: Caddy. */
    readonly driver?: EngineDriver | undefined;
}

export function createServing({
    config,
    db,
    keyring,
    settings,
    hooks,
    clock,
    log,
    ...parts
}: ServingParts): Serving {
    const driver =
        parts.driver ??
        new CaddyDriver({
            binary: config.caddy === 'caddy' ? null : config.caddy,
            dataDir: config.dataDir,
            user: config.engineUser,
            log
        });
    const home = (): EngineFolders => engineHome(config.dataDir, config.engineUser);
    const hostStore = new DatabaseHostStore(db);
    const certificateStore = new DatabaseCertificateStore(db, keyring);
    const engine = new ProxyEngine({
        driver,
        db,
        clock,
        home,
        settings,
        log,
        hosts: hostStore,
        certificates: certificateStore,
        sealer: keyring,
        vet: (call, before, after) => hosts.vet(call, before, after),
        places: () => forbidden(config.dataDir, home).folders,
        hooks: {
            applied: ({ revision, reloaded }) =>
                notifyLater(hooks.engineApplied, () => ({ revision, reloaded })),
            failed: ({ message }) => notifyLater(hooks.engineFailed, () => ({ message }))
        }
    });
    settings.attach(engine);
    settings.onChange((keys) => {
        if (keys.includes('engine.autoReload') && settings.get('engine.autoReload')) {
            engine
                .catchUp()
                .catch((error: unknown) =>
                    log.error('What waited could not be brought to the engine', { error })
                );
        }
    });
    const addresses = (): string[] =>
        [settings.get('server.ipv4'), settings.get('server.ipv6')].filter((address) => address !== null);
    const readable: Readable = async (folder) => createReadable(home().owner)(folder);
    const safety = { ...forbidden(config.dataDir, home), placeholders: unsupportedPlaceholders };
    const hosts: Hosts = new Hosts({
        engine,
        clock,
        readable,
        list: new HostList(db, hostStore, engine),
        hooks: hostHooks(hooks),
        checklist: createChecklist({
            engine,
            readable,
            addresses,
            nameservers: () => settings.get('dns.nameservers')
        }),
        safety: { ...safety, addresses },
        mask: (part, site) => maskConfig(part, advancedOf([site]))
    });
    const dnsProviderStore = new DnsProviderStore(db, keyring);
    const dnsProviders = new DnsProviders({
        db,
        clock,
        store: dnsProviderStore,
        nameservers: () => settings.get('dns.nameservers'),
        lego: { binary: null, dataDir: config.dataDir },
        usersOf: (id) => certificateStore.usersOf(id),
        usersIn: (tx, id) => certificateStore.usersIn(tx, id)
    });
    const accounts = new AcmeAccounts(db, keyring, clock);
    const certificates = new Certificates({
        engine,
        store: certificateStore,
        db,
        clock,
        covers,
        log,
        accounts,
        own: new EngineCertificates(() => storageOf(home)),
        ports: {
            http: parts.outbound,
            tasks: parts.tasks,
            dns: dnsProviders,
            events: certificateEvents(hooks),
            systemCall: parts.systemCall,
            settings: () => ({
                directory: settings.get('engine.acmeDirectory'),
                email: settings.get('engine.acmeEmail'),
                eab: settings.get('engine.acmeEab'),
                roots: settings.get('certificates.caRoots')
            })
        }
    });
    return {
        driver,
        engine,
        hosts,
        certificates,
        dnsProviders,
        sections: {
            dnsProviders: createDnsProviderSection({
                db,
                clock,
                store: dnsProviderStore,
                usersOf: (id) => certificateStore.usersOf(id)
            }),
            certificates: createCertificateSection({
                store: certificateStore,
                accounts,
                clock,
                covers,
                providers: () => dnsProviderStore.list(),
                changed: () => certificates.changed()
            }),
            hosts: createHostSection({
                engine,
                clock,
                readable,
                hooks: hostHooks(hooks),
                safety: () => ({ ...safety, addresses: addresses() })
            })
        },
        forbidden() {
            const { folders, sockets } = forbidden(config.dataDir, home);
            return [...folders, ...sockets];
        },
        async adapt(caddyfile, signal) {
            const binary = findBinary(config.caddy === 'caddy' ? null : config.caddy);
            if (binary === null) {
                throw fail.TOOL_MISSING({ tool: 'caddy', install: 'apt-get install caddy' });
            }
            return translateErrors(() => adaptCaddyfile(home(), binary, caddyfile, signal));
        }
    };
}

/** The folder in which the engine stores its certificates; null while the user that it is to run as is unknown. */
function storageOf(home: () => EngineFolders): string | null {
    try {
        return home().storage;
    } catch {
        return null;
    }
}

function certificateEvents({
    certificateIssued,
    certificateExpiring,
    certificateFailed
}: CoreHooks): CertificateEvents {
    return {
        issued: (event) => notifyLater(certificateIssued, () => event),
        expiring: (event) => notifyLater(certificateExpiring, () => event),
        failed: (event) => notifyLater(certificateFailed, () => ({ ...event, problem: { ...event.problem } }))
    };
}

/** Where no host may lead. A home that is not known yet (no such user) has no folders to protect. */
function forbidden(
    dataDir: string,
    home: () => EngineFolders
): { readonly folders: readonly string[]; readonly sockets: readonly string[] } {
    try {
        const { persistent, runtime, adminSocket } = home();
        return { folders: [dataDir, persistent, runtime], sockets: [adminSocket] };
    } catch {
        return { folders: [dataDir], sockets: [] };
    }
}

function hostHooks({ hostBeforeSave, hostGuard, hostAfterChange }: CoreHooks): HostHooks {
    const actionOf = (before: unknown, after: unknown): 'create' | 'update' | 'delete' =>
        before === null ? 'create' : after === null ? 'delete' : 'update';
    return {
        async beforeSave(before, body, _call: Call) {
            return hostBeforeSave.used
                ? ((await hostBeforeSave.run({ before, host: body })).host as HostChange)
                : body;
        },
        async guard(before, after) {
            if (hostGuard.used) {
                await hostGuard.run({ action: actionOf(before, after), before, after });
            }
        },
        afterChange: (before, after) =>
            notifyLater(hostAfterChange, () => ({
                action: actionOf(before, after),
                host: (after ?? before) as Readonly<Record<string, unknown>>
            }))
    };
}
