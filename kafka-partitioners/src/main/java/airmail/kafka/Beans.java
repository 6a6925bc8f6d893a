package airmail.kafka;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;

import javax.management.InstanceAlreadyExistsException;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;

/**
 * What one partitioner shows by JMX: a bean for itself and one for each node, gone when it is
 * closed.
 *
 * <p>That they cannot be shown is logged and stops nobody: records matter more. It happens where
 * two producers of a JVM have one {@code client.id}, of which Kafka warns too.
 */
final class Beans implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(Beans.class);
    private static final String DOMAIN = "airmail.partitioner";

    private final MBeanServer server = ManagementFactory.getPlatformMBeanServer();
    private final String producer;
    private final boolean shown;
    private final List<ObjectName> names = new ArrayList<>();

    Beans(String policy, String clientId, boolean shown) {
        this.producer = ",policy=" + policy + ",client-id=" + ObjectName.quote(clientId);
        this.shown = shown;
    }

    void show(PolicyMXBean bean) {
        register("type=Policy" + producer, bean);
    }

    void show(NodeTally tally) {
        String node = tally.node == NodeTally.NO_NODE ? "none" : Integer.toString(tally.node);
        register("type=Node" + producer + ",node-id=" + node, tally);
    }

    private synchronized void register(String properties, Object bean) {
        if (!shown) {
            return;
        }
        try {
            ObjectName name = new ObjectName(DOMAIN + ":" + properties);
            server.registerMBean(bean, name);
            names.add(name);
        } catch (InstanceAlreadyExistsException error) {
            LOG.warn("{}:{} is another producer's: this one has no metrics", DOMAIN, properties);
        } catch (JMException | SecurityException error) {
            LOG.warn("{}:{} cannot be shown by JMX", DOMAIN, properties, error);
        }
    }

    @Override
    public synchronized void close() {
        for (ObjectName name : names) {
            try {
                server.unregisterMBean(name);
            } catch (JMException | SecurityException error) {
                LOG.warn("{} cannot be taken from JMX", name, error);
            }
        }
        names.clear();
    }
}
