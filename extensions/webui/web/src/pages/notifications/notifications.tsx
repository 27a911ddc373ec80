/** Channels of notifications, and what was sent over them. */
import { useState } from 'preact/hooks';

import { call } from '../../api/client.ts';
import { invalidate, useMay, useRead } from '../../api/queries.ts';
import { Button } from '../../kit/button.tsx';
import { confirm } from '../../kit/dialogs/questions.tsx';
import { toast, toastFailure } from '../../kit/dialogs/toast.tsx';
import { Table } from '../../kit/display/table.tsx';
import { Badge } from '../../kit/display/value.tsx';
import { Icon } from '../../kit/icon.tsx';
import { Menu } from '../../kit/menu.tsx';
import { Page, Waiting } from '../../kit/page.tsx';
import { t } from '../../words/t.ts';
import { ChannelDialog, type ChannelView } from './channel-dialog.tsx';
import { Deliveries, type Delivery } from './deliveries.tsx';

/** Shows the screen *Notifications*: the channels and their deliveries. */
export default function Notifications() {
    const { data, error } = useRead<readonly ChannelView[]>('/api/settings/channels');
    const may = useMay();
    const [isOpen, setOpen] = useState(false);
    const start = may('settings:write') ? (
        <Button look="primary" onPress={() => setOpen(true)}>
            <Icon name="plus" />
            {t('New channel')}
        </Button>
    ) : null;
    return (
        <Page
            title={t('Notifications')}
            lead={t(
                'Where the panel tells what you should know: certificates that end, plugins that fail, alerts.'
            )}
            actions={start}
        >
            {data === undefined ? (
                <Waiting error={error} />
            ) : data.length === 0 ? (
                <Table
                    caption={t('Channels')}
                    rows={data}
                    columns={[]}
                    keyOf={() => ''}
                    icon="bell"
                    empty={t('No channel yet: the panel tells nothing beyond these pages.')}
                    firstStep={start}
                />
            ) : (
                data.map((channel) => <Channel key={channel.id} channel={channel} />)
            )}
            {isOpen ? <ChannelDialog channel={null} onClose={() => setOpen(false)} /> : null}
        </Page>
    );
}

function Channel({ channel }: { readonly channel: ChannelView }) {
    const { id, name, type, enabled, events, url, to } = channel;
    const may = useMay();
    const [isOpen, setOpen] = useState(false);
    const path = `/api/settings/channels/${id}`;
    const test = async (): Promise<void> => {
        await call<Delivery>('POST', `${path}/test`).then(({ data }) => {
            if (data.state === 'failed') {
                toastFailure(new Error(data.error ?? data.state));
            } else {
                toast(data.state === 'delivered' ? t('Delivered') : t('It is on its way'));
            }
        }, toastFailure);
        await invalidate('/api/settings/channels');
    };
    const remove = async (): Promise<void> => {
        if (await confirm(t('Remove {name}?', { name }), t('Remove'))) {
            await call('DELETE', path).catch(toastFailure);
            await invalidate('/api/settings/channels');
        }
    };
    return (
        <section class="card">
            <header class="row spread">
                <h2 class="row">
                    <Icon name={type === 'email' ? 'bell' : 'globe'} />
                    {name}
                    <Badge text={enabled ? 'enabled' : 'disabled'} />
                </h2>
                {may('settings:write') ? (
                    <div class="row">
                        <Button onPress={test}>{t('Send a test')}</Button>
                        <Menu label={t('Actions for {name}', { name })}>
                            <Button onPress={() => setOpen(true)}>{t('Change')}</Button>
                            <Button look="danger" onPress={remove}>
                                {t('Remove')}
                            </Button>
                        </Menu>
                    </div>
                ) : null}
            </header>
            <p class="dim">
                {t(type)} · {url ?? to?.join(', ')} ·{' '}
                {events.map((event) => (event === '*' ? t('all events') : event)).join(', ')}
            </p>
            <details>
                <summary>{t('What was sent')}</summary>
                <Deliveries channel={id} canReplay={may('settings:write')} />
            </details>
            {isOpen ? <ChannelDialog channel={channel} onClose={() => setOpen(false)} /> : null}
        </section>
    );
}
