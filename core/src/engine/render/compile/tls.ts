/** Certificates: which names the engine gets certificates for, from which authority, and which certificates it is given. */
import { join } from 'node:path';

import type { EngineSettings, SiteCertificate } from '../../site.ts';
import { byName, type CertificateChoice } from '../certificate-choice.ts';
import { literal } from '../placeholder.ts';
import type { CompileContext, Part } from './context.ts';
import { permissionHost, permissionPath } from './dispatch.ts';

/** What the TLS part of a configuration depends on besides settings and folders; every list sorted. */
export interface TlsNames {
    /** Exact names whose certificates the engine's own authority signs, when they are asked for. */
    readonly internal: readonly string[];
    /** Wildcards that the engine's own authority signs, at load: the engine makes no wildcard certificate on demand. */
    readonly wildcards: readonly string[];
    /** Exact names below one of `wildcards` that want a public certificate. Without an entry here the engine would use the wildcard's. */
    readonly managed: readonly string[];
    /** The certificates in `load_files`. */
    readonly certificates: readonly Pick<SiteCertificate, 'id' | 'fingerprint'>[];
    /** Names that more than one of `certificates` covers. */
    readonly choices: readonly CertificateChoice[];
}

/** The apps `tls` and `pki`. */
export const tlsApps = (names: TlsNames, context: CompileContext): Part => {
    const { settings, folders } = context;
    const internal = [{ module: 'internal' }];
    const automate = [...names.wildcards, ...names.managed].sort();
    const chosen = new Set(names.choices.map(({ fingerprint }) => fingerprint));
    const files = names.certificates.map((certificate) => ({
        certificate: join(folders.certificates, `${certificateName(certificate)}.crt`),
        key: join(folders.certificates, `${certificateName(certificate)}.key`),
        ...(chosen.has(certificate.fingerprint) && { tags: [certificate.fingerprint] })
    }));

    return {
        tls: {
            ...((files.length > 0 || automate.length > 0) && {
                certificates: {
                    ...(files.length > 0 && { load_files: files }),
                    ...(automate.length > 0 && { automate })
                }
            }),
            automation: {
                policies: [
                    ...(names.managed.length > 0
                        ? [{ subjects: names.managed, issuers: publicIssuers(settings) }]
                        : []),
                    ...(names.internal.length > 0
                        ? [{ subjects: names.internal, issuers: internal, on_demand: true }]
                        : []),
                    ...(names.wildcards.length > 0 ? [{ subjects: names.wildcards, issuers: internal }] : []),
                    // For every other name the engine first asks for permission, so that an unknown name reaches no authority.
                    { issuers: publicIssuers(settings), on_demand: true }
                ],
                on_demand: permission(context)
            }
        },
        pki: { certificate_authorities: { local: { install_trust: false } } }
    };
};

/** Which certificate a connection gets: the chosen one for a name that several cover, and an exact name before a wildcard. */
export const connectionPolicies = ({ choices }: TlsNames): readonly Part[] => {
    const policiesOf = (some: readonly CertificateChoice[]): readonly Part[] =>
        [...Map.groupBy(some, ({ fingerprint }) => fingerprint)]
            .sort(([a], [b]) => (a < b ? -1 : 1))
            .map(([fingerprint, named]) => ({
                match: { sni: named.map(({ name }) => name) },
                certificate_selection: { any_tag: [fingerprint] }
            }));
    return [
        ...policiesOf(choices.filter(({ name }) => !name.startsWith('*.'))),
        ...policiesOf(choices.filter(({ name }) => name.startsWith('*.'))),
        {}
    ];
};

/** A certificate's file name without its ending. */
export const certificateName = ({ id, fingerprint }: Pick<SiteCertificate, 'id' | 'fingerprint'>): string =>
    `${id}-${fingerprint}`;

const publicIssuers = (settings: EngineSettings): readonly Part[] => [
    {
        module: 'acme',
        ...(settings.acmeDirectory !== null && { ca: settings.acmeDirectory }),
        ...(settings.acmeEmail !== null && { email: literal(settings.acmeEmail) }),
        ...(settings.acmeEab !== null && {
            external_account: { key_id: settings.acmeEab.keyId, mac_key: settings.acmeEab.macKey }
        })
    }
];

const permission = ({ settings, address, features }: CompileContext): Part => {
    const host = permissionHost(address);
    const endpoint = `http://${host.includes(':') ? `[${host}]` : host}:${settings.httpPort}${permissionPath}`;
    return features.permissionModule ? { permission: { module: 'http', endpoint } } : { ask: endpoint };
};

/** The certificates that a configuration loads and those that it signs itself; empty for a configuration that this panel did not compile. */
export const loadedNames = (config: unknown): Pick<TlsNames, 'internal' | 'certificates' | 'choices'> => {
    const apps = record(record(config)['apps']);
    const tls = record(apps['tls']);
    const connections = list(
        record(record(record(apps['http'])['servers'])['sites'])['tls_connection_policies']
    ).map(record);
    const policies = list(record(tls['automation'])['policies']).map(record);
    const own = policies.filter(
        (policy) =>
            policy['on_demand'] === true && record(list(policy['issuers'])[0])['module'] === 'internal'
    );
    const files = list(record(tls['certificates'])['load_files']).map((file) =>
        /(\d+)-([0-9a-f]+)\.crt$/.exec(String(record(file)['certificate']))
    );
    return {
        internal: own
            .flatMap((policy) => list(policy['subjects']))
            .filter((name) => typeof name === 'string'),
        certificates: files.flatMap((match) =>
            match === null ? [] : [{ id: Number(match[1]), fingerprint: match[2] ?? '' }]
        ),
        choices: connections
            .flatMap(({ match, certificate_selection: selection }) => {
                const [fingerprint] = list(record(selection)['any_tag']);
                return typeof fingerprint === 'string'
                    ? list(record(match)['sni']).flatMap((name) =>
                          typeof name === 'string' ? [{ name, fingerprint }] : []
                      )
                    : [];
            })
            .sort(byName)
    };
};

const record = (value: unknown): Readonly<Record<string, unknown>> =>
    typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};

const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
