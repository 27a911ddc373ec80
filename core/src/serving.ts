/** The serving half of the panel, put together: the engine, the hosts and certificates that it serves, and the hooks around their changes. */
import type { Call } from './call.ts';
import { createCertificates, type Certificates } from './certificates/service.ts';
import { createCertificateStore } from './certificates/store.ts';
import type { Clock } from './clock.ts';
import type { Config } from './config.ts';
import type { Database } from './db/database.ts';
import { createCaddyDriver } from './engine/caddy.ts';
import { createEngine } from './engine/engine.ts';
import { engineHome, type EngineFolders } from './engine/home.ts';
import { advancedOf, maskConfig } from './engine/mask.ts';
import { unsupportedPlaceholders } from './engine/placeholder.ts';
import type { EngineDriver } from './engine/port.ts';
import type { EngineService } from './engine/service.ts';
import { notifyLater, type CoreHooks } from './hooks.ts';
import { createChecklist } from './hosts/checklist.ts';
import { createHostList } from './hosts/list.ts';
import { createReadable, type Readable } from './hosts/paths.ts';
import { covers } from './hosts/safety.ts';
import type { HostChange } from './hosts/schema.ts';
import { createHosts, type HostHooks, type Hosts } from './hosts/service.ts';
import { createHostStore } from './hosts/store.ts';
import type { Keyring } from './keyring.ts';
import type { Logger } from './log.ts';
import type { Settings } from './settings/settings.ts';

export interface Serving {
    readonly driver: EngineDriver;
    readonly engine: EngineService;
    readonly hosts: Hosts;
    readonly certificates: Certificates;
}

export interface ServingParts {
    readonly config: Config;
    readonly db: Database;
    readonly keyring: Keyring;
    readonly settings: Settings;
    readonly hooks: CoreHooks;
    readonly clock: Clock;
    readonly log: Logger;
    /** Default: Caddy. */
    readonly driver?: EngineDriver | undefined;
}

export function createServing({ config, db, keyring, settings, hooks, clock, log, ...parts }: ServingParts): Serving {
    const driver = parts.driver ?? createCaddyDriver({ binary: config.caddy === 'caddy' ? null : config.caddy, dataDir: config.dataDir, user: config.engineUser, log });
    const home = (): EngineFolders => engineHome(config.dataDir, config.engineUser);
    const hostStore = createHostStore(db);
    const certificateStore = createCertificateStore(db, keyring);
    const engine = createEngine({
        driver, db, clock, home, settings, log, hosts: hostStore, certificates: certificateStore, sealer: keyring,
        vet: (call, before, after) => hosts.vet(call, before, after),
        hooks: {
            applied: ({ revision, reloaded }) => notifyLater(hooks.engineApplied, () => ({ revision, reloaded })),
            failed: ({ message }) => notifyLater(hooks.engineFailed, () => ({ message }))
        }
    });
    settings.attach(engine);
    const addresses = (): string[] => [settings.get('server.ipv4'), settings.get('server.ipv6')].filter((address) => address !== null);
    const readable: Readable = async (folder) => createReadable(home().owner)(folder);
    const hosts: Hosts = createHosts({
        engine, clock, readable,
        list: createHostList(db, hostStore, engine),
        hooks: hostHooks(hooks),
        checklist: createChecklist({ engine, readable, addresses, nameservers: () => settings.get('dns.nameservers') }),
        safety: { ...forbidden(config.dataDir, home), addresses, placeholders: unsupportedPlaceholders },
        mask: (part, site) => maskConfig(part, advancedOf([site]))
    });
    return { driver, engine, hosts, certificates: createCertificates({ engine, store: certificateStore, db, clock, covers }) };
}

/** Where no host may lead. A home that is not known yet (no such user) has no folders to protect. */
function forbidden(dataDir: string, home: () => EngineFolders): { readonly folders: readonly string[]; readonly sockets: readonly string[] } {
    try {
        const { persistent, runtime, adminSocket } = home();
        return { folders: [dataDir, persistent, runtime], sockets: [adminSocket] };
    }
    catch {
        return { folders: [dataDir], sockets: [] };
    }
}

function hostHooks({ hostBeforeSave, hostGuard, hostAfterChange }: CoreHooks): HostHooks {
    const actionOf = (before: unknown, after: unknown): 'create' | 'update' | 'delete' => (before === null ? 'create' : after === null ? 'delete' : 'update');
    return {
        async beforeSave(before, body, _call: Call) {
            return hostBeforeSave.used ? (await hostBeforeSave.run({ before, host: body })).host as HostChange : body;
        },
        async guard(before, after) {
            if (hostGuard.used) {
                await hostGuard.run({ action: actionOf(before, after), before, after });
            }
        },
        afterChange: (before, after) => notifyLater(hostAfterChange, () => ({ action: actionOf(before, after), host: (after ?? before) as Readonly<Record<string, unknown>> }))
    };
}
