/** Plugins of the running panel, through its API. */
import type { Offer } from '@portico/registry';

import type { Capabilities } from '../../../plugins/runtime/generation/generation.ts';
import type { TaskView } from '../../../server/http/answer/task-view.ts';
import { CommandError, RequestRefused } from '../../command/command-error.ts';
import type { Client } from '../../panel/client.ts';
import { followTask } from '../../panel/follow-task.ts';
import { mergeGrants } from './consent.ts';
import type {
    InstallOrder,
    PluginAdmin,
    PluginChange,
    PluginInstalled,
    PluginListing,
    ShownPlugin
} from './plugin-admin.ts';

/** The result of an install task. */
interface InstallResult {
    readonly plugin: string;
    readonly from: string | null;
    readonly settingsLeftOut?: string;
}

const base = '/api/plugins';
/** A plugin may need this long to stop and to start. */
const changeMs = 200_000;
const offersMs = 340_000;

/** Changes plugins by requests to the running panel. */
export class PanelPluginAdmin implements PluginAdmin {
    readonly isRunning = true;
    readonly #client: Client;

    constructor(client: Client) {
        this.#client = client;
    }

    async list(): Promise<PluginListing> {
        const { data, message, headers } = await this.#client.call<readonly ShownPlugin[]>('GET', base);
        return {
            isRunning: true,
            safeMode: headers['x-portico-safe-mode'] === '1',
            message: messageOf(message),
            plugins: data
        };
    }

    async offers(): Promise<{ readonly offers: readonly Offer[]; readonly message: string | null }> {
        const { data, message } = await this.#client.call<readonly Offer[]>(
            'GET',
            `${base}?available=true`,
            undefined,
            offersMs
        );
        return { offers: data, message: messageOf(message) };
    }

    change(
        name: string,
        { enabled, grants }: { readonly enabled: boolean; readonly grants: Capabilities | null },
        { cascade }: { readonly cascade: boolean }
    ): Promise<PluginChange> {
        return this.#put(
            name,
            { enabled, ...(grants === null ? {} : { grants }) },
            cascade && !enabled ? '?cascade=true' : ''
        );
    }

    async remove(
        name: string,
        { purge, cascade }: { readonly purge: boolean; readonly cascade: boolean }
    ): Promise<string | null> {
        const query = [...(purge ? ['purge=true'] : []), ...(cascade ? ['cascade=true'] : [])].join('&');
        const { message } = await this.#client.call<null>(
            'DELETE',
            `${pathOf(name)}${query === '' ? '' : `?${query}`}`,
            undefined,
            changeMs
        );
        return messageOf(message);
    }

    async install(order: InstallOrder): Promise<PluginInstalled> {
        const { source, enabled, grants } = order;
        const given = grants === 'all' ? null : grants;
        const result = await this.#send(order, given).catch((error: unknown) =>
            this.#sendWithGrants(order, error)
        );
        const plugin = await this.#get(result.plugin);
        const { missing, asked } = plugin.capabilities;
        const lacksGrants = grants === 'all' ? missing !== null : given !== null && 'tarball' in source;
        const installed = lacksGrants
            ? (
                  await this.#put(result.plugin, {
                      grants: given ?? asked,
                      ...(enabled && result.from === null ? { enabled } : {})
                  })
              ).plugin
            : plugin;
        return { plugin: installed, from: result.from, settingsLeftOut: result.settingsLeftOut ?? null };
    }

    /** Installs, or changes to the version of an installed package, in one attempt. */
    async #send(order: InstallOrder, grants: Capabilities | null): Promise<InstallResult> {
        const { source, enabled, restoreData, tell } = order;
        const given = grants === null ? {} : { grants };
        const isOtherVersion =
            'package' in source && source.version !== undefined && source.integrity === undefined && enabled;
        const present = isOtherVersion ? await this.#findInstalled(source.package) : null;
        if (isOtherVersion && present !== null && present.version !== source.version) {
            const { data } = await this.#client.call<TaskView>(
                'PUT',
                `${base}/${present.name}`,
                { version: source.version, ...given, ...(restoreData ? { restoreData } : {}) },
                changeMs
            );
            return 'kind' in data
                ? followTask<InstallResult>(this.#client, data, tell)
                : { plugin: present.name, from: present.version };
        }
        if (restoreData) {
            throw new CommandError(
                present === null
                    ? 'There is nothing to go back to: the package is not installed'
                    : `${present.name} ${present.version} is installed already`
            );
        }
        const query = new URLSearchParams({
            ...(enabled ? {} : { enabled: 'false' }),
            ...(source.integrity === undefined ? {} : { integrity: source.integrity })
        });
        const { data } =
            'tarball' in source
                ? await this.#client.call<TaskView>('POST', `${base}?${query}`, source.tarball, changeMs)
                : await this.#client.call<TaskView>(
                      'POST',
                      base,
                      { ...source, ...(enabled ? {} : { enabled }), ...given },
                      changeMs
                  );
        return followTask<InstallResult>(this.#client, data, tell);
    }

    /** Tries an upgrade again that was refused for want of grants, if the person has agreed to them. @throws the error otherwise */
    async #sendWithGrants(order: InstallOrder, error: unknown): Promise<InstallResult> {
        const { source, grants } = order;
        const isAgreed = grants === 'all' || (grants !== null && 'tarball' in source);
        if (!isAgreed || !(error instanceof RequestRefused) || error.reason !== 'CONSENT_REQUIRED') {
            throw error;
        }
        const before = (await this.#all()).find(({ name, package: packageName }) =>
            'package' in source ? packageName === source.package : name === error.data['plugin']
        );
        if (before === undefined) {
            throw error;
        }
        const wanted =
            grants === 'all'
                ? mergeGrants(before.capabilities.granted, error.data['missing'] as Capabilities)
                : grants;
        return 'tarball' in source
            ? this.#sendArchive(order, before.name, wanted)
            : this.#send(order, wanted);
    }

    /** The body of an archive has no room for grants: they are given before it, and taken back when it is refused. */
    async #sendArchive(order: InstallOrder, name: string, wanted: Capabilities): Promise<InstallResult> {
        const { granted } = (await this.#get(name)).capabilities;
        await this.#put(name, { grants: wanted });
        try {
            return await this.#send(order, null);
        } catch (error) {
            await this.#put(name, { grants: granted });
            throw error;
        }
    }

    async #get(name: string): Promise<ShownPlugin> {
        return (await this.#client.call<ShownPlugin>('GET', pathOf(name))).data;
    }

    async #put(name: string, body: object, query = ''): Promise<PluginChange> {
        const { data, message } = await this.#client.call<ShownPlugin>(
            'PUT',
            `${pathOf(name)}${query}`,
            body,
            changeMs
        );
        return { plugin: data, message: messageOf(message) };
    }

    async #all(): Promise<readonly ShownPlugin[]> {
        return (await this.#client.call<readonly ShownPlugin[]>('GET', base)).data;
    }

    async #findInstalled(packageName: string): Promise<ShownPlugin | null> {
        const all = await this.#all();
        return all.find((plugin) => plugin.package === packageName && plugin.origin === 'lock') ?? null;
    }
}

function pathOf(name: string): string {
    return `${base}/${encodeURIComponent(name)}`;
}

/** Null for a message that says nothing beyond success. */
function messageOf(message: string): string | null {
    return message === 'ok' || message === '' ? null : message;
}
