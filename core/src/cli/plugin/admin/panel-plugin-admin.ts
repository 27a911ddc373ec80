/** Plugins of the running panel, through its API. */
import type { Offer } from '@portico/registry';

import type { TaskView } from '../../../features/tasks/task.ts';
import type { Capabilities } from '../../../plugins/runtime/generation.ts';
import { Complaint, Refusal } from '../../command/command-error.ts';
import type { Client } from '../../panel/client.ts';
import { followTask } from '../../panel/follow-task.ts';
import { joined } from './consent.ts';
import type { Changed, InstallOrder, PluginAdmin, ShownPlugin } from './plugin-admin.ts';

/** What the task of an install answers. */
interface Result {
    readonly plugin: string;
    readonly from: string | null;
    readonly settingsLeftOut?: string;
}

const base = '/api/plugins';
/** A plugin may take its time to stop and to start. */
const changeMs = 200_000;
const offersMs = 340_000;

export function createPanelAdmin(client: Client): PluginAdmin {
    const get = async (name: string): Promise<ShownPlugin> =>
        (await client.call<ShownPlugin>('GET', `${base}/${encodeURIComponent(name)}`)).data;
    const put = async (name: string, body: object, query = ''): Promise<Changed> => {
        const { data, message } = await client.call<ShownPlugin>(
            'PUT',
            `${base}/${encodeURIComponent(name)}${query}`,
            body,
            changeMs
        );
        return { plugin: data, message: said(message) };
    };
    /** One attempt. @returns what the task answers */
    const send = async (
        { source, enabled, restoreData, tell }: InstallOrder,
        grants: Capabilities | null
    ): Promise<Result> => {
        const given = grants === null ? {} : { grants };
        const there =
            'package' in source && source.version !== undefined && source.integrity === undefined && enabled
                ? await installed(source.package)
                : null;
        if (there !== null && 'package' in source && there.version !== source.version) {
            const { data } = await client.call<TaskView>(
                'PUT',
                `${base}/${there.name}`,
                { version: source.version, ...given, ...(restoreData ? { restoreData } : {}) },
                changeMs
            );
            return 'kind' in data
                ? followTask<Result>(client, data, tell)
                : { plugin: there.name, from: there.version };
        }
        if (restoreData) {
            throw new Complaint(
                there === null
                    ? 'There is nothing to go back to: it is not installed'
                    : `${there.name} ${there.version} is there already`
            );
        }
        const { data } =
            'tarball' in source
                ? await client.call<TaskView>(
                      'POST',
                      `${base}?${new URLSearchParams({ ...(enabled ? {} : { enabled: 'false' }), ...(source.integrity === undefined ? {} : { integrity: source.integrity }) })}`,
                      source.tarball,
                      changeMs
                  )
                : await client.call<TaskView>(
                      'POST',
                      base,
                      { ...source, ...(enabled ? {} : { enabled }), ...given },
                      changeMs
                  );
        return followTask<Result>(client, data, tell);
    };
    const list = async (): Promise<readonly ShownPlugin[]> =>
        (await client.call<readonly ShownPlugin[]>('GET', base)).data;
    const installed = async (packageName: string): Promise<ShownPlugin | null> =>
        (await list()).find((plugin) => plugin.package === packageName && plugin.origin === 'lock') ?? null;
    /** The body of an archive has no room for grants: they are given before it, and taken back when it is refused. */
    const sendArchive = async (order: InstallOrder, name: string, wanted: Capabilities): Promise<Result> => {
        const {
            capabilities: { granted }
        } = await get(name);
        await put(name, { grants: wanted });
        try {
            return await send(order, null);
        } catch (error) {
            await put(name, { grants: granted });
            throw error;
        }
    };

    return {
        isRunning: true,
        async list() {
            const { data, message, headers } = await client.call<readonly ShownPlugin[]>('GET', base);
            return {
                isRunning: true,
                safeMode: headers['x-portico-safe-mode'] === '1',
                message: said(message),
                plugins: data
            };
        },
        async offers() {
            const { data, message } = await client.call<readonly Offer[]>(
                'GET',
                `${base}?available=true`,
                undefined,
                offersMs
            );
            return { offers: data, message: said(message) };
        },
        change: (name, { enabled, grants }, { cascade }) =>
            put(
                name,
                { enabled, ...(grants === null ? {} : { grants }) },
                cascade && !enabled ? '?cascade=true' : ''
            ),
        async remove(name, { purge, cascade }) {
            const query = [...(purge ? ['purge=true'] : []), ...(cascade ? ['cascade=true'] : [])].join('&');
            const { message } = await client.call<null>(
                'DELETE',
                `${base}/${encodeURIComponent(name)}${query === '' ? '' : `?${query}`}`,
                undefined,
                changeMs
            );
            return said(message);
        },
        async install(order) {
            const { source, enabled, grants } = order;
            const given = grants === 'all' ? null : grants;
            let result: Result;
            try {
                result = await send(order, given);
            } catch (error) {
                const missing = lackOf(error, order);
                const before =
                    missing === null
                        ? undefined
                        : (await list()).find(({ name, package: packageName }) =>
                              'package' in source
                                  ? packageName === source.package
                                  : name === (error as Refusal).data['plugin']
                          );
                if (missing === null || before === undefined) {
                    throw error;
                }
                const wanted = given ?? joined(before.capabilities.granted, missing);
                result =
                    'tarball' in source
                        ? await sendArchive(order, before.name, wanted)
                        : await send(order, wanted);
            }
            const plugin = await get(result.plugin);
            const { missing, asked } = plugin.capabilities;
            const isBehind = grants === 'all' ? missing !== null : given !== null && 'tarball' in source;
            const settled = isBehind
                ? (
                      await put(result.plugin, {
                          grants: given ?? asked,
                          ...(enabled && result.from === null ? { enabled } : {})
                      })
                  ).plugin
                : plugin;
            return { plugin: settled, from: result.from, settingsLeftOut: result.settingsLeftOut ?? null };
        }
    };
}

/** What an upgrade lacks that somebody agreed to with the same words; null when it failed for something else. */
function lackOf(error: unknown, { grants, source }: InstallOrder): Capabilities | null {
    const isAgreed = grants === 'all' || (grants !== null && 'tarball' in source);
    return isAgreed && error instanceof Refusal && error.reason === 'CONSENT_REQUIRED'
        ? (error.data['missing'] as Capabilities)
        : null;
}

function said(message: string): string | null {
    return message === 'ok' || message === '' ? null : message;
}
