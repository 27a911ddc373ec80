/** Compiles the engine's whole configuration from profiles and names. */
import { adminConfig } from '../../files/home.ts';
import { fragmentApps } from '../../fragments/fragments.ts';
import type { EngineConfig } from '../../port.ts';
import { plainError } from '../profile/chain.ts';
import { accessLogs, serverLogs, withoutAccess } from './access-log.ts';
import type { CompileContext } from './context.ts';
import { type CompiledProfile, siteRoutes } from './dispatch.ts';
import { connectionPolicies, tlsApps, type TlsNames } from './tls.ts';

/** Deterministic: `profiles` and `names` are sorted by the caller. @throws Error when a folder's path has characters that the engine reads as a pattern */
export const compile = (
    profiles: readonly CompiledProfile[],
    names: TlsNames,
    context: CompileContext
): EngineConfig => {
    const { settings, folders, features } = context;
    const named = [
        folders.table,
        folders.storage,
        folders.certificates,
        folders.logFile,
        folders.accessLogFile
    ];
    for (const path of named) {
        if (/[{}*?[\]\\]/.test(path)) {
            throw new Error(`the engine's folder may not have any of { } * ? [ ] \\ in its path: ${path}`);
        }
    }

    const host =
        context.address === undefined || !context.address.includes(':')
            ? (context.address ?? '')
            : `[${context.address}]`;
    return {
        admin: adminConfig(folders),
        logging: {
            logs: {
                default: {
                    level: 'INFO',
                    writer: { output: 'file', filename: folders.logFile, roll_size_mb: 10, roll_keep: 5 },
                    encoder: { format: 'json' },
                    ...withoutAccess(settings.accessLog)
                },
                ...accessLogs(settings.accessLog, folders)
            }
        },
        storage: { module: 'file_system', root: folders.storage },
        apps: {
            ...fragmentApps(settings),
            http: {
                http_port: settings.httpPort,
                https_port: settings.httpsPort,
                grace_period: '30s',
                servers: {
                    // One server serves both ports, so that profiles are provisioned once and the first site with ssl needs no new listener.
                    sites: {
                        listen: [`${host}:${settings.httpPort}`, `${host}:${settings.httpsPort}`],
                        protocols: features.http3 ? ['h1', 'h2', 'h3'] : ['h1', 'h2'],
                        read_header_timeout: '30s',
                        automatic_https: { disable_redirects: true },
                        ...serverLogs(settings.accessLog),
                        tls_connection_policies: connectionPolicies(names),
                        routes: siteRoutes(profiles, context),
                        errors: { routes: [plainError] }
                    }
                }
            },
            ...tlsApps(names, context)
        }
    };
};
