import com.amazonaws.services.dynamodbv2.local.main.ServerRunner;
import com.amazonaws.services.dynamodbv2.local.server.DynamoDBProxyServer;
import org.eclipse.jetty.server.Connector;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;

/** DynamoDB Local on 127.0.0.1 only: by itself it listens on every interface. */
public class DynamoDbLocal {
  public static void main(String[] arguments) throws Exception {
    DynamoDBProxyServer local = ServerRunner.createServerFromCommandLineArgs(arguments);
    var server = DynamoDBProxyServer.class.getDeclaredField("server");
    server.setAccessible(true);
    for (Connector connector : ((Server) server.get(local)).getConnectors()) {
      ((ServerConnector) connector).setHost("127.0.0.1");
    }
    local.start();
    local.join();
  }
}
