/** Enabling and disabling a plugin. Before it gets anything that it did not have, the user sees what that is. */
import { useState } from 'preact/hooks';

import { call } from '../../api/client.ts';
import { ApiFailure } from '../../api/failure.ts';
import { queries } from '../../api/queries.ts';
import { Button } from '../../kit/button.tsx';
import { Dialog } from '../../kit/dialogs/dialog.tsx';
import { confirm } from '../../kit/dialogs/questions.tsx';
import { toast, toastBad, toastFailure } from '../../kit/dialogs/toast.tsx';
import { showTask } from '../../shell/tasks.tsx';
import { t } from '../../words/t.ts';
import type { Capabilities, PluginView } from './plugin-view.ts';
import { isWide } from './preview.tsx';

/** The button, and the question for consent. */
export function Switch({ plugin }: { readonly plugin: PluginView }) {
    const { name, title, enabled, state, capabilities } = plugin;
    const [asked, setAsked] = useState<Capabilities | null>(null);
    const change = async (body: Readonly<Record<string, unknown>>): Promise<void> => {
        try {
            const { status, data } = await call<PluginView & { id: number }>('PUT', `/api/plugins/${name}`, {
                body
            });
            if (status === 202) {
                showTask(data.id);
            } else if (body['enabled'] === true && data.failure !== null) {
                toastBad(t('It did not start: {why}', { why: data.failure.message }));
            } else {
                toast(t('Saved'));
            }
            setAsked(null);
        } catch (error) {
            if (error instanceof ApiFailure && error.reason === 'CONSENT_REQUIRED') {
                setAsked(capabilities.missing ?? capabilities.asked);
            } else {
                toastFailure(error);
            }
        }
        await queries.invalidateQueries();
    };
    const disable = async (): Promise<void> => {
        const question = t('Disable {title}? Its routes answer no more, its data stays.', { title });
        if (await confirm(question, t('Disable'))) {
            await change({ enabled: false });
        }
    };
    const isRetry = enabled && ['failed', 'quarantined'].includes(state);
    return (
        <>
            {enabled && !isRetry ? (
                <Button onPress={disable}>{t('Disable')}</Button>
            ) : (
                <Button look="primary" onPress={() => change({ enabled: true })}>
                    {isRetry ? t('Try again') : t('Enable')}
                </Button>
            )}
            {asked === null ? null : (
                <Consent
                    title={title}
                    asked={asked}
                    onClose={() => setAsked(null)}
                    onGrant={() => change({ enabled: true, grants: capabilities.asked })}
                />
            )}
        </>
    );
}

function Consent({
    title,
    asked,
    onClose,
    onGrant
}: {
    readonly title: string;
    readonly asked: Capabilities;
    readonly onClose: () => void;
    readonly onGrant: () => Promise<void>;
}) {
    return (
        <Dialog title={t('{title} asks for this', { title })} onClose={onClose}>
            <CapabilityList capabilities={asked} />
            <footer>
                <Button onPress={onClose}>{t('Cancel')}</Button>
                <Button look="danger" onPress={onGrant}>
                    {t('Grant it')}
                </Button>
            </footer>
        </Dialog>
    );
}

/** What a plugin may use, one line a capability. `*` means any, and is marked. */
export function CapabilityList({ capabilities }: { readonly capabilities: Capabilities }) {
    const words: Readonly<Record<string, string>> = {
        exec: t('Runs programs'),
        users: t('Runs programs as accounts'),
        files: t('Opens folders'),
        network: t('Connects to hosts'),
        sockets: t('Connects to sockets'),
        hosts: t('Creates hosts'),
        services: t('Keeps programs running beyond the panel'),
        pages: t('Serves the pages of the panel'),
        taps: t('Hooks into'),
        public: t('Has routes without a login'),
        routes: t('Calls routes'),
        panel: t('Asks the panel for'),
        collect: t('Calls hooks of others'),
        direct: t('Goes past the panel'),
        certificates: t('Reads certificates'),
        api: t('Calls the API'),
        logs: t('Reads logs')
    };
    const entries = Object.entries(capabilities);
    if (entries.length === 0) {
        return <p class="dim">{t('Nothing of the machine')}</p>;
    }
    return (
        <dl class="facts">
            {entries.map(([key, value]) => {
                const text = textOf(value);
                const isAny = Array.isArray(value) && value.includes('*');
                const wide = isWide(key, value);
                return (
                    <div key={key}>
                        <dt>{words[key] ?? key}</dt>
                        <dd class={wide ? 'warning' : ''}>{isAny ? t('any') : text}</dd>
                    </div>
                );
            })}
        </dl>
    );
}

/** What is granted of a capability: names, or names by the kind of work. */
function textOf(value: unknown): string {
    if (Array.isArray(value)) {
        return value.map(String).join(', ');
    }
    return typeof value === 'object' && value !== null
        ? Object.entries(value)
              .map(([key, each]) => `${t(key)}: ${textOf(each)}`)
              .join(' · ')
        : String(value);
}
