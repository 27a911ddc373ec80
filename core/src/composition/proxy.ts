/** The proxy: the engine, the hosts and certificates that it serves, and the hooks around their changes. */
import { foreignWriter } from '@portico/registry';

import { AccessLog } from '../engine/access-log/access-log.ts';
import type { LogPlace } from '../engine/access-log/log-folder.ts';
import { CaddyDriver } from '../engine/caddy/caddy.ts';
import { adaptCaddyfile } from '../engine/caddy/config/adapt.ts';
import { findBinary } from '../engine/caddy/process/binary.ts';
import { ProxyEngine } from '../engine/engine.ts';
import { translateErrors } from '../engine/errors.ts';
import { type EngineFolders, engineHome } from '../engine/files/home.ts';
import { refusedTexts } from '../engine/handlers/check.ts';
import type { EngineConfig, EngineDriver } from '../engine/port.ts';
import { isAccessLogged } from '../engine/render/compile/access-log.ts';
import type { Section } from '../engine/section.ts';
import type { EngineService } from '../engine/service.ts';
import { advancedOf, maskConfig } from '../engine/wire/mask.ts';
import { AcmeAccounts } from '../features/certificates/acme/accounts.ts';
import { EngineCertificates } from '../features/certificates/engine-certificates.ts';
import { createCertificateSection } from '../features/certificates/export/export-section.ts';
import type { CertificateEvents } from '../features/certificates/ports.ts';
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
import type { HostView } from '../features/hosts/schema/view.ts';
import { Hosts } from '../features/hosts/service.ts';
import { DatabaseHostStore } from '../features/hosts/store.ts';
import type { Settings } from '../features/settings/settings.ts';
import type { Call } from '../platform/call.ts';
import { fail } from '../platform/errors.ts';
import { type CoreHooks, notifyLater } from '../platform/hooks.ts';
import type { Logger } from '../platform/log/log.ts';
import type { Foundation } from './foundation.ts';

/** The engine, and the features whose objects it serves. */
export interface ProxyServices {
    readonly driver: EngineDriver;
    readonly engine: EngineService;
    readonly accessLog: AccessLog;
    readonly hosts: Hosts;
    readonly certificates: Certificates;
    readonly dnsProviders: DnsProviders;
    /** Their sections of an export document. */
    readonly sections: {
        readonly dnsProviders: Section;
        readonly certificates: Section;
        readonly hosts: Section;
    };
    /** Absolute paths that no host and no plugin may reach: the data folder, the engine's own folders and its socket. */
    forbidden(): readonly string[];
    /** Turns a Caddyfile into the engine's configuration. @throws ENGINE_REJECTED, ENGINE_UNAVAILABLE, TOOL_MISSING */
    adapt(caddyfile: string, signal: AbortSignal): Promise<EngineConfig>;
}

type Home = () => EngineFolders;

/** What differs in a rehearsal and in tests. */
export interface ProxyOptions {
    /** Default: Caddy. */
    readonly driver?: EngineDriver;
    /** Where the engine lives. */
    readonly home?: Home;
    /** Milliseconds from one load of the engine to the next; the engine has a default. */
    readonly reloadWindowMs?: number;
}

/** Builds the engine and what it serves. */
export function createProxyServices(
    foundation: Foundation,
    {
        driver: given,
        home = () => engineHome(foundation.config.dataDir, foundation.config.engineUser),
        reloadWindowMs
    }: ProxyOptions
): ProxyServices {
    const { config, db, keyring, settings, hooks, clock } = foundation;
    const forbidden = forbiddenIn(config.dataDir, home);
    const log = foundation.log.child({ part: 'engine' });
    const binary = config.caddy === 'caddy' ? null : config.caddy;
    const driver =
        given ?? new CaddyDriver({ binary, dataDir: config.dataDir, user: config.engineUser, log });
    const hostStore = new DatabaseHostStore(db, keyring);
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
        places: () => forbidden().folders,
        ...(reloadWindowMs === undefined ? {} : { windowMs: reloadWindowMs }),
        hooks: {
            applied({ revision, reloaded }) {
                notifyLater(hooks.engineApplied, () => ({ revision, reloaded }));
                void accessLog.tidy();
            },
            failed: ({ message }) => notifyLater(hooks.engineFailed, () => ({ message }))
        }
    });
    const accessLog = createAccessLog(foundation, engine, home);
    followSettings(engine, accessLog, settings, log);
    const { hosts, section: hostSection } = createHosts(foundation, engine, hostStore, {
        home,
        forbidden: forbidden()
    });
    const { dnsProviders, certificates, sections } = createCertificates(
        { ...foundation, log },
        engine,
        certificateStore,
        home
    );
    return {
        driver,
        engine,
        accessLog,
        hosts,
        certificates,
        dnsProviders,
        sections: { ...sections, hosts: hostSection },
        forbidden() {
            const { folders, sockets } = forbidden();
            return [...folders, ...sockets];
        },
        async adapt(caddyfile, signal) {
            const found = findBinary(binary);
            if (found === null) {
                throw fail.TOOL_MISSING({ tool: 'caddy', install: 'apt-get install caddy' });
            }
            return translateErrors(() => adaptCaddyfile(home(), found, caddyfile, signal));
        }
    };
}

/** Engine settings reach the engine as changes of their own; with `engine.autoReload` on again, waiting changes are applied. */
function followSettings(engine: ProxyEngine, accessLog: AccessLog, settings: Settings, log: Logger): void {
    settings.attach(engine);
    settings.onChange((keys) => {
        if (keys.includes('engine.accessLog')) {
            void accessLog.tidy();
        }
        if (keys.includes('engine.autoReload') && settings.get('engine.autoReload')) {
            engine
                .catchUp()
                .catch((error: unknown) =>
                    log.error('The changes that wait could not be applied', { error })
                );
        }
    });
}

function createAccessLog({ settings, log }: Foundation, engine: EngineService, home: Home): AccessLog {
    let place: LogPlace | null = null;
    return new AccessLog({
        place: () => (place ??= accessLogPlace(home)),
        hostOf: (name) => engine.draft().hostOf(name),
        isOn: () => settings.get('engine.accessLog'),
        isWritten: async () => isAccessLogged(await engine.configNow()),
        log
    });
}

/** Where the engine writes the access log; null while the user that it runs as is missing. */
function accessLogPlace(home: Home): LogPlace | null {
    try {
        const { accessLogFile, owner, panel } = home();
        return { path: accessLogFile, uids: [owner.uid, panel.uid] };
    } catch {
        return null;
    }
}

function createHosts(
    { db, clock, settings, hooks }: Foundation,
    engine: EngineService,
    store: DatabaseHostStore,
    { home, forbidden }: { readonly home: Home; readonly forbidden: Forbidden }
): { readonly hosts: Hosts; readonly section: Section } {
    const addresses = (): string[] =>
        [settings.get('server.ipv4'), settings.get('server.ipv6')].filter((address) => address !== null);
    const readable: Readable = async (folder) => createReadable(home().owner)(folder);
    const safety = { ...forbidden, refusedTexts };
    const nameservers = (): readonly string[] => settings.get('dns.nameservers');
    const hosts = new Hosts({
        engine,
        clock,
        readable,
        list: new HostList(db, store, engine),
        hooks: hostHooks(hooks),
        checklist: createChecklist({ engine, readable, addresses, nameservers }),
        safety: { ...safety, addresses },
        mask: (part, site) => maskConfig(part, advancedOf([site]))
    });
    const section = createHostSection({
        engine,
        clock,
        readable,
        hooks: hostHooks(hooks),
        safety: () => ({ ...safety, addresses: addresses() })
    });
    return { hosts, section };
}

function createCertificates(
    {
        config,
        db,
        keyring,
        clock,
        log,
        settings,
        hooks,
        tasks,
        outbound,
        systemCall
    }: Omit<Foundation, 'log'> & { readonly log: Logger },
    engine: EngineService,
    store: DatabaseCertificateStore,
    home: Home
): Pick<ProxyServices, 'certificates' | 'dnsProviders'> & {
    readonly sections: Pick<ProxyServices['sections'], 'dnsProviders' | 'certificates'>;
} {
    const providerStore = new DnsProviderStore(db, keyring);
    const usersOf = (id: number): ReturnType<typeof store.usersOf> => store.usersOf(id);
    const dnsProviders = new DnsProviders({
        db,
        clock,
        store: providerStore,
        nameservers: () => settings.get('dns.nameservers'),
        lego: { binary: null, dataDir: config.dataDir },
        usersOf,
        usersIn: (tx, id) => store.usersIn(tx, id)
    });
    const accounts = new AcmeAccounts(db, keyring, clock);
    const certificates = new Certificates({
        engine,
        store,
        db,
        clock,
        covers,
        log,
        accounts,
        own: new EngineCertificates(() => storageOf(home)),
        ports: {
            http: outbound,
            tasks,
            dns: dnsProviders,
            events: certificateEvents(hooks),
            systemCall,
            settings: () => ({
                directory: settings.get('engine.acmeDirectory'),
                email: settings.get('engine.acmeEmail'),
                eab: settings.get('engine.acmeEab'),
                roots: settings.get('certificates.caRoots')
            })
        }
    });
    const sections = {
        dnsProviders: createDnsProviderSection({ db, clock, store: providerStore, usersOf }),
        certificates: createCertificateSection({
            store,
            accounts,
            clock,
            covers,
            providers: () => providerStore.list(),
            changed: () => certificates.changed()
        })
    };
    return { certificates, dnsProviders, sections };
}

/** The folder of the certificates that the engine obtained; null while the user that it runs as is missing. */
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

/** Paths that no host may reach. */
interface Forbidden {
    readonly folders: readonly string[];
    readonly sockets: readonly string[];
    readonly foreignWriter: typeof foreignWriter | null;
}

/** Gives the forbidden paths. They are looked up once, because each look reads files; without the engine's user there are no folders of the engine to protect yet. */
function forbiddenIn(dataDir: string, home: Home): () => Forbidden {
    let found: Forbidden | null = null;
    return () => {
        try {
            if (found === null) {
                const { persistent, runtime, adminSocket, owner } = home();
                found = {
                    folders: [dataDir, persistent, runtime],
                    sockets: [adminSocket],
                    foreignWriter: owner.switched ? null : foreignWriter
                };
            }
            return found;
        } catch {
            return { folders: [dataDir], sockets: [], foreignWriter: null };
        }
    };
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
                host: (after ?? before) as HostView
            }))
    };
}
