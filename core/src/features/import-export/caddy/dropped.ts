/** Names the parts of a Caddy configuration that no host can have, so that an import drops nothing silently. Pure. */
import { type Json, list, record } from '../json.ts';

/** The losses of the whole configuration, one sentence each. */
export function droppedOf(config: Json): readonly string[] {
    const apps = record(config['apps']);
    const http = record(apps['http']);
    const servers = Object.values(record(http['servers'])).map(record);
    const others = Object.keys(apps).filter((app) => app !== 'http' && app !== 'tls');
    return [
        ...tlsNotes(record(apps['tls'])),
        ...note(
            config['logging'] !== undefined || servers.some((server) => server['logs'] !== undefined)
                ? ['log']
                : [],
            (log) => `${log}: what is logged, and where to`
        ),
        ...note(strange(config, ['apps', 'logging']), (keys) => `the settings ${keys} of that Caddy itself`),
        ...note(
            strange(http, ['servers', 'http_port', 'https_port']),
            (keys) => `the settings ${keys} of all servers`
        ),
        ...servers.flatMap((server) =>
            note(
                [
                    ...strange(server, knownOfServer),
                    ...strange(record(server['automatic_https']), ['disable']).map(
                        (key) => `automatic_https.${key}`
                    )
                ],
                (keys) => `the settings ${keys} of the server on ${list(server['listen']).join(', ')}`
            )
        ),
        ...note(others, (keys) => `the apps ${keys}, which have no sites`)
    ];
}

/** The losses of the site with these names, one sentence each. */
export function droppedOfSite(server: Json, names: readonly string[]): readonly string[] {
    const isFor = (route: Json): boolean => {
        const sets = list(route['match']).map(record);
        return (
            sets.length === 0 ||
            sets.some(
                (set) =>
                    set['host'] === undefined ||
                    list(set['host']).some((name) => names.includes(String(name)))
            )
        );
    };
    const policy = list(server['tls_connection_policies'])
        .map(record)
        .find(({ match }) => {
            const { sni } = record(match);
            return sni === undefined || list(sni).some((name) => names.includes(String(name)));
        });
    const tls = strange(policy ?? {}, ['match', 'certificate_selection', 'client_authentication']);
    return [
        ...(list(record(server['errors'])['routes']).map(record).some(isFor)
            ? ['left out: handle_errors, what it answers in place of an error']
            : []),
        ...(policy?.['client_authentication'] === undefined
            ? []
            : ['left out: client_auth; visitors need no certificate of their own any more']),
        ...(tls.length === 0 ? [] : [`left out: the settings ${tls.join(', ')} of its TLS`])
    ];
}

const knownOfServer = [
    'listen',
    'routes',
    'automatic_https',
    'tls_connection_policies',
    'errors',
    'logs'
] as const;

function tlsNotes(tls: Json): readonly string[] {
    const automation = record(tls['automation']);
    const policies = list(automation['policies']).map(record);
    const issuers = policies.flatMap((policy) => list(policy['issuers']).map(record));
    return [
        ...note(
            strange(record(tls['certificates']), ['automate']).length > 0 ? ['certificates'] : [],
            (certificates) => `${certificates} that lie in files; upload them where sslMode auto is not meant`
        ),
        ...note(
            texts(issuers, 'email'),
            (emails) => `email ${emails}; the setting engine.acmeEmail has the address that CAs are told`
        ),
        ...note(
            texts(issuers, 'ca'),
            (names) =>
                `the CA ${names}; the setting engine.acmeDirectory names the one that sslMode auto asks`
        ),
        ...note(
            [
                ...strange(tls, ['certificates', 'automation']),
                ...strange(automation, ['policies']),
                ...policies.flatMap((policy) => strange(policy, ['subjects', 'issuers'])),
                ...issuers.flatMap((issuer) => strange(issuer, ['module', 'email', 'ca']))
            ],
            (keys) => `the settings ${keys} of certificates`
        )
    ];
}

/** One note about all parts that are present; empty when none is. */
function note(found: readonly string[], words: (joined: string) => string): readonly string[] {
    return found.length === 0 ? [] : [`Left out: ${words([...new Set(found)].join(', '))}`];
}

function strange(value: Json, known: readonly string[]): readonly string[] {
    return Object.keys(value).filter((key) => !known.includes(key));
}

function texts(values: readonly Json[], key: string): readonly string[] {
    return values.map((value) => value[key]).filter((text): text is string => typeof text === 'string');
}
