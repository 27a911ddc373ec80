/**
 * The manifest: the `portico` field of a plugin's package.json, read without running any of its code. The schema below is the one source
 * of the validator, the type and the published JSON Schema.
 */
import { joi, type Value } from '@portico/sdk';
import type Joi from 'joi';
import gt from 'semver/functions/gt.js';
import satisfies from 'semver/functions/satisfies.js';
import valid from 'semver/functions/valid.js';
import validRange from 'semver/ranges/valid.js';

const name = /^[a-z][a-z0-9-]{1,39}$/;
const permission = /^[a-z][a-z0-9-]{0,39}$/;
const range = joi
    .string()
    .max(200)
    .custom(
        (value: string, { error }) => (validRange(value) === null ? error('any.invalid') : value),
        'As npm writes ranges: ^1.2.0'
    );
/** An admin decides by this text, so it has no control characters and no characters that turn the direction of the text beside it. */
const shown = /^[^\p{Cc}\u200e\u200f\u2028-\u202e\u2066-\u2069]*$/u;
const line = (longest: number) => joi.string().min(1).max(longest).pattern(shown);
const texts = joi.array().items(line(1024)).unique().max(200);

/** What a plugin says of itself. */
export const manifestSchema = joi.object({
    name: joi
        .string()
        .pattern(name)
        .required()
        .description('Mounted under `/api/plugins/<name>`; the area of its permissions'),
    title: line(80).description('Shown to people; default: the description of the package'),
    icon: joi
        .string()
        .pattern(/^[a-z0-9][a-z0-9-]{0,39}$/)
        .description('Name of the icon that the pages show'),
    sdk: range.required().description('Versions of @portico/sdk that it works with, as a semver range'),
    requires: joi.record(range).description('Plugins that it cannot do without, by name, with their ranges'),
    optional: joi.record(range).description('Plugins that it makes use of when they are there'),
    permissions: joi
        .record(
            joi.alternatives(
                line(200),
                joi.object({
                    title: line(200).required(),
                    roles: joi.array().items(joi.string().valid('viewer', 'operator')).unique().required(),
                    dangerous: joi.boolean().valid(true)
                })
            )
        )
        .description(
            'Permissions: a title, or a title with the fixed roles that get it, and `dangerous` where no assistant may ever use it by a pattern. `read` (every user) and `write` (admins) always exist'
        ),
    capabilities: joi
        .object({
            exec: texts.description(
                'Programs that it runs, and gives secrets to as files; inside a name, `*` is any text without a slash; `*` means any'
            ),
            users: texts.description('Accounts that it runs programs as'),
            files: texts.description('Folders and single files that it opens, absolute'),
            network: texts.description(
                'Hosts that it connects to, or has programs connect to; `*` means any'
            ),
            sockets: texts.description('Unix sockets that it connects to, absolute'),
            hosts: joi
                .string()
                .valid('own', 'read', 'write')
                .description(
                    'Hosts that it may see and make, and whose upstreams it may ask for their health'
                ),
            certificates: joi
                .string()
                .valid('read', 'write')
                .description('Certificates that it may see, or also upload and remove'),
            api: joi
                .object({ read: texts, write: texts })
                .description(
                    'Routes that it calls as the asking user, by id; `*` means whatever the user may. Later, without the user, only those that the user gave it a mandate for'
                ),
            collect: texts.description(
                'Collecting hooks of the core that it runs; `backup.collect` gives it the data and the keys of the panel and of every plugin'
            ),
            taps: texts.description('Guards, waterfalls and collecting hooks that it taps'),
            public: texts.description('The written reasons of its public routes'),
            panel: joi
                .array()
                .items(joi.string().valid('listeners', 'folders', 'rehearse'))
                .unique()
                .description(
                    'What it asks of the panel itself: `listeners` says where panel and engine listen, `rehearse` boots the panel on a copy of its data'
                ),
            services: joi
                .boolean()
                .valid(true)
                .description(
                    'Keeps programs running when it is disabled or the panel ends; they are those of `exec`'
                ),
            logs: joi
                .array()
                .items(joi.string().valid('access'))
                .unique()
                .description(
                    'Logs of the proxy engine that it reads; `access` has each request to a host: who asked for which path, without query strings and headers'
                ),
            pages: joi
                .boolean()
                .valid(true)
                .description(
                    'Serves the pages at the root of the site: it can act as everyone who opens them'
                ),
            direct: joi
                .array()
                .items(joi.string().valid('exec', 'network', 'files', 'native'))
                .unique()
                .description('What it reaches past the SDK; this cannot be limited, only isolated')
        })
        .description('What it asks for; an admin grants it'),
    contributes: joi
        .object({
            pages: joi
                .array()
                .items(
                    joi.object({
                        id: joi.string().pattern(permission).required(),
                        title: line(80).required(),
                        icon: joi.string().max(80),
                        access: joi.string().pattern(permission).required(),
                        entry: joi
                            .string()
                            .max(200)
                            .required()
                            .description(
                                'An ES module among the assets (`assets/page.js`), for which the panel makes the document, or a path that answers a document'
                            ),
                        place: joi
                            .string()
                            .valid('nav', 'tab', 'dashboard', 'host')
                            .description('Where it is shown; default: in the navigation'),
                        uses: texts.description(
                            'Routes of others that the page calls, by id; each is in `capabilities.api` too, which an admin grants'
                        )
                    })
                )
                .max(50)
                .unique('id'),
            group: line(40).description('Heading that its entry in the navigation stands under'),
            locales: joi
                .record(
                    joi
                        .string()
                        .pattern(/^assets\/[\w./-]+\.json$/)
                        .max(200)
                )
                .description(
                    'Files of its texts in other languages by language tag, each an object of translations by the English text'
                )
        })
        .description('Data for a user interface')
});

/** The `portico` field of a package.json, as the schema accepts it. */
export type Manifest = Value<typeof manifestSchema>;

/** A plugin's package before any of its code runs. */
export interface PluginPackage {
    /** The npm name. */
    readonly package: string;
    readonly version: string;
    readonly manifest: Manifest;
    readonly title: string;
    /** Range of Node versions in `engines.node`; null without one. */
    readonly node: string | null;
}

/** Whether a version comes after another one. */
export const isNewer = (version: string, than: string): boolean => gt(version, than);

/** Why a package is not a plugin that can be used; `code` is stable. */
export interface ManifestFault {
    readonly code:
        | 'MANIFEST_MISSING'
        | 'MANIFEST_INVALID'
        | 'MANIFEST_UNKNOWN_KEY'
        | 'SDK_RANGE_MISSING'
        | 'SDK_RANGE'
        | 'NAME_RESERVED'
        | 'PACKAGE_INVALID'
        | 'TREE_MISSING'
        | 'TREE_CHANGED';
    readonly message: string;
}

/**
 * Reads a package.json that was parsed already.
 *
 * @param reserved - names that no plugin may have: the core's permission areas and route groups
 * @param hostSdk - version of the panel's SDK. A manifest for another SDK that this panel cannot read is refused with SDK_RANGE
 */
export function readManifest(
    packageJson: unknown,
    reserved: ReadonlySet<string>,
    hostSdk?: string
): { readonly plugin: PluginPackage } | { readonly fault: ManifestFault } {
    if (
        !isObject(packageJson) ||
        typeof packageJson['name'] !== 'string' ||
        valid(String(packageJson['version'])) === null
    ) {
        return fault('PACKAGE_INVALID', 'package.json has no name, or no semver version');
    }
    const { portico, name: npmName, version, description, engines } = packageJson;
    if (!isObject(portico)) {
        return fault('MANIFEST_MISSING', `${npmName} has no "portico" field in its package.json`);
    }
    // A manifest for another SDK may have keys that this one does not know, so the range is looked at first.
    if (typeof portico['sdk'] !== 'string' || validRange(portico['sdk']) === null) {
        return fault(
            'SDK_RANGE_MISSING',
            `${npmName} does not say which versions of @portico/sdk it works with ("portico.sdk", a semver range)`
        );
    }
    // The SDK types its schemas by their values; `validate` is joi's own.
    const { error, value } = (manifestSchema as unknown as Joi.Schema).validate(portico, {
        abortEarly: false,
        convert: false,
        errors: { wrap: { label: false } }
    }) as Joi.ValidationResult<Manifest>;
    if (error !== undefined && hostSdk !== undefined && !satisfies(hostSdk, portico['sdk'])) {
        return fault(
            'SDK_RANGE',
            `${typeof portico['name'] === 'string' ? portico['name'].slice(0, 40) : npmName} ${String(version)} works with @portico/sdk ${portico['sdk']}, but this panel has ${hostSdk}`
        );
    }
    if (error !== undefined) {
        const unknown = error.details.every((detail) => detail.type === 'object.unknown');
        return fault(
            unknown ? 'MANIFEST_UNKNOWN_KEY' : 'MANIFEST_INVALID',
            error.details.map((detail) => `portico.${detail.message}`).join('; ')
        );
    }
    if (reserved.has(value.name)) {
        return fault('NAME_RESERVED', `The name ${value.name} belongs to the core`);
    }
    const wrong =
        [...Object.keys(value.requires ?? {}), ...Object.keys(value.optional ?? {})].find(
            (other) => !name.test(other) || other === value.name
        ) ??
        Object.entries(value.permissions ?? {}).find(
            ([key, said]) => !permission.test(key) || (key === 'read' && typeof said !== 'string')
        )?.[0]; // every user may read: only the title of `read` is the plugin's
    if (wrong !== undefined) {
        return fault('MANIFEST_INVALID', `portico names ${JSON.stringify(wrong)}, which cannot stand there`);
    }
    const unasked = unaskedUse(value);
    if (unasked !== undefined) {
        return fault(
            'MANIFEST_INVALID',
            `portico.contributes.pages uses ${unasked}, which is not in portico.capabilities.api: an admin has to grant it`
        );
    }
    const node = isObject(engines) && typeof engines['node'] === 'string' ? engines['node'] : null;
    return {
        plugin: {
            package: npmName,
            version: String(version),
            manifest: value,
            title:
                value.title ??
                (typeof description === 'string' && description !== '' && shown.test(description)
                    ? description.slice(0, 80)
                    : value.name),
            node
        }
    };
}

/** A route that a page wants to call, and that the manifest does not ask an admin for. */
function unaskedUse({ capabilities, contributes }: Manifest): string | undefined {
    const asked = new Set([...(capabilities?.api?.read ?? []), ...(capabilities?.api?.write ?? [])]);
    return (contributes?.pages ?? [])
        .flatMap(({ uses = [] }) => uses)
        .find((id) => !asked.has(id) && !asked.has('*'));
}

function fault(code: ManifestFault['code'], message: string): { readonly fault: ManifestFault } {
    return { fault: { code, message } };
}

/** Whether a value of JSON is an object, and no list. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
    return typeof value === 'object' && value !== null && !Array.isArray(value);
}
