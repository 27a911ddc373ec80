/** The overview: what needs a hand, how all is, and what happened last. It follows the panel's events. */
import { useMay, useMe } from '../../api/queries.ts';
import { DashboardPages } from '../../frames/places.tsx';
import { Page } from '../../kit/page.tsx';
import { t } from '../../words/t.ts';
import { LastChanges, RunningTasks } from './activity.tsx';
import { Attention } from './attention.tsx';
import { CertificatesCard, EngineCard, HostsCard, PluginsCard } from './cards.tsx';
import { MachineCard } from './machine.tsx';

/** Shows the first screen: the state of the panel at a glance. */
export default function Dashboard() {
    const may = useMay();
    const me = useMe();
    return (
        <Page
            title={t('Overview')}
            lead={me === undefined ? '' : t('Welcome, {name}', { name: me.username })}
        >
            <Attention />
            <div class="columns figures">
                {may('hosts:read') ? <HostsCard /> : null}
                {may('certificates:read') ? <CertificatesCard /> : null}
                {may('plugins:read') ? <PluginsCard /> : null}
                {may('engine:read') ? <EngineCard /> : null}
                <MachineCard />
                <DashboardPages />
            </div>
            <div class="columns wide">
                {may('audit:read') ? <LastChanges /> : null}
                <RunningTasks />
            </div>
        </Page>
    );
}
