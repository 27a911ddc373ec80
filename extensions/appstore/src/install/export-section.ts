/** Installed apps in exports of the panel: what is needed to run them again elsewhere, without their data. The core seals what a plugin gives. */
import { isFailure, joi, type Value } from '@portico/sdk';

import { keyIdOf } from '../apps/catalogue.ts';
import { checkAppDocument } from '../catalogue/app-document.ts';
import type { Machine } from '../machine.ts';
import { type FileStore, sha256Of } from '../sources/files.ts';
import type { Sources } from '../sources/sources.ts';
import type { AppHosts } from './hosts.ts';
import { noExposure } from './planning/exposure.ts';
import type { Layout } from './planning/layout.ts';
import { importedBecause, type InstalledStore } from './store.ts';

const text = joi.string().max(2_000_000).required();
const port = joi.number().integer().min(1).max(65_535);
const layoutSchema = joi.object({
    port: port.required(),
    ports: joi.record(port).required(),
    publish: joi
        .array()
        .items(
            joi.object({
                service: joi.string().required(),
                containerPort: port.required(),
                hostIp: joi.string().allow('').required(),
                hostPort: port.required()
            })
        )
        .required(),
    limits: joi
        .record(joi.object({ memoryBytes: joi.number().integer().min(1), cpus: joi.number().min(0) }))
        .required(),
    domain: joi.string().max(300).allow(null).required(),
    ssl: joi.boolean().required(),
    sslMode: joi.string().max(40).allow(null).required()
});
const appSchema = joi.object({
    name: joi
        .string()
        .pattern(/^[a-z0-9][a-z0-9-]{0,39}$/)
        .required(),
    source: joi.string().max(40).required(),
    app: joi.string().max(100).required(),
    keyId: joi.string().max(100).allow(null).required(),
    autoUpdate: joi.valid('off', 'patch', 'minor', 'all').required(),
    document: text,
    values: joi.record(joi.string().allow('').max(100_000)).required(),
    layout: layoutSchema.required(),
    digests: joi.record(joi.string().pattern(/^sha256:[0-9a-f]{64}$/)).required()
});
const documentSchema = joi.array().items(appSchema).max(1_000).required();
type ExportedApp = Value<typeof appSchema>;

/** What exports and imports need. */
export interface ExportParts {
    readonly store: InstalledStore;
    readonly files: FileStore;
    readonly sources: Sources;
    readonly hosts: AppHosts;
    readonly machine: Machine;
}

/** What of installed apps goes into an export. */
export async function collectApps({ store, files }: ExportParts): Promise<readonly object[]> {
    const rows = (await store.list()).filter(({ revision }) => revision > 0);
    return Promise.all(
        rows.map(async ({ name, source, app, keyId, autoUpdate, revision }) => {
            const { documentHash, values, layout, digests } = await store.revision(name, revision);
            const document = (await files.find(documentHash))?.body ?? '';
            return { name, source, app, keyId, autoUpdate, document, values, layout, digests };
        })
    );
}

/**
 * Brings apps back that are not there. They do not run before an admin deploys them: what they expose wants consent here.
 *
 * @returns what could not be brought back, in words
 */
export async function restoreApps(given: unknown, parts: ExportParts): Promise<readonly string[]> {
    const { value, error } = documentSchema.validate(given);
    if (error !== undefined) {
        return [error.message];
    }
    const problems: string[] = [];
    for (const app of value as readonly ExportedApp[]) {
        try {
            const problem = await restoreApp(app, parts);
            problems.push(...(problem === null ? [] : [`${app.name}: ${problem}`]));
        } catch (fault) {
            if (!isFailure(fault) && !(fault instanceof SyntaxError)) {
                throw fault;
            }
            problems.push(`${app.name}: ${fault.message}`);
        }
    }
    return problems;
}

async function restoreApp(app: ExportedApp, parts: ExportParts): Promise<string | null> {
    const { store, files, sources, hosts, machine } = parts;
    const { name, source, keyId, autoUpdate } = app;
    const documentHash = sha256Of(app.document);
    const there = await store.find(name);
    if (there !== null && !(there.revision === 0 && there.state === 'failed')) {
        const now = there.revision === 0 ? null : await store.revision(name, there.revision);
        const isSame =
            now?.documentHash === documentHash && JSON.stringify(now.values) === JSON.stringify(app.values);
        return isSame ? null : 'It is installed already, and differs';
    }
    if ((await store.leftover(name)) !== null) {
        return 'An app of this name left data here: take them up, or remove them';
    }
    const known = (await sources.list()).find((each) => each.name === source);
    if (known !== undefined && keyIdOf(known) !== keyId) {
        return `The source ${source} has another key here`;
    }
    const document = checkAppDocument(JSON.parse(app.document));
    const layout = await free(app.layout, parts);
    const { port, domain, ssl, sslMode } = layout;
    // An import that was cut is begun anew.
    await store.remove(name);
    await store.create({
        ...{ name, source, app: app.app, keyId, port, domain, ssl, sslMode, autoUpdate },
        ...{ revision: 0, state: 'failed', hostId: null, takenBack: '[]', operation: null },
        ...{ lastError: 'Its import was cut: import it again', createdAt: machine.now() }
    });
    await files.add([{ sha256: documentHash, type: 'application/json', body: app.document }]);
    await store.commit(
        name,
        {
            ...{ version: document.version, at: machine.now(), by: null, because: importedBecause },
            ...{ documentHash, values: app.values, layout, exposure: noExposure },
            digests: app.digests
        },
        {
            hostId: await hosts.own(domain),
            lastError:
                'It was imported, and does not run yet: send a change with the consent that it asks for'
        }
    );
    return null;
}

/** Ports on loopback stay as they were, where no other app has them here. */
async function free(layout: Layout, { store, machine }: ExportParts): Promise<Layout> {
    const taken = new Set(await store.reservedPorts());
    const own = async (port: number): Promise<number> => {
        let found = port;
        while (taken.has(found)) {
            found = await machine.freePort();
        }
        taken.add(found);
        return found;
    };
    const ports: Record<string, number> = {};
    for (const [key, port] of Object.entries(layout.ports)) {
        ports[key] = await own(port);
    }
    return { ...layout, port: await own(layout.port), ports };
}
